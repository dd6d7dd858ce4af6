// Descriptors of packed groups: each group's A and B are matrices of their own, as wide as the
// group's K, one behind the other. Where one begins and its pitch are known on the device alone, so
// the producer that reads it writes the descriptor: into shared memory, a group's numbers in the
// place of those that the host left open, and from there to a place in memory.
//
// NO DESCRIPTOR IS REWRITTEN WHILE A LOAD MAY USE IT. Places are taken in turn, and there are more
// of them than stages in the ring: each group that had one has issued a load at least, so when a
// place comes round again, a stage that was filled through it has been read and filled anew.
//
// NO TWO CTAS SHARE A PLACE. They go by the SM, and a kernel of packed groups fills more than half
// of an SM's shared memory, so that no two of its CTAs are ever on one; each kernel has places of
// its own, and each context.
#pragma once

#include "device/ptx/barrier.cuh"
#include "device/ptx/copy.cuh"
#include "kernel_abi/k_groups.h"
#include "kernel_abi/smem_layout.h"

namespace oct::device {

inline constexpr int kMostSms = 192;  // that a device may number

struct alignas(128) MapPlace {
  abi::TensorMap map;
};
// NOTE: a variable of the module: it is there when the kernel is loaded, and a launch needs no
// memory from anybody.
template <abi::TileConfig kTile>
__device__ MapPlace packed_maps[kMostSms][2][abi::kPackedPlaces];

template <abi::TileConfig kTile>
class PackedMap {
  static constexpr abi::SmemLayout kLayout = abi::make_smem_layout(kTile, 1);
  static_assert(abi::kPackedPlaces > kLayout.stages, "a place comes round while it is in use");
  static_assert(2 * kLayout.total > abi::kSharedMemoryOfSm, "two CTAs of an SM share places");

 public:
  // `shared`: address of the template's room, `like`: the template, `which`: 0 of A, 1 of B,
  // `data`: the first group's matrix, `rows` of which each has. All lanes, likewise below.
  __device__ __forceinline__ PackedMap(uint32_t shared, const abi::TensorMap& like, int which,
                                       const uint8_t* data, int rows, int lane_id)
      : room(shared), first(data), height(rows), lane(lane_id) {
    static_assert(sizeof(abi::TensorMap) == 128);
    ptx::store_shared_u32(room + 4 * lane, reinterpret_cast<const uint32_t*>(&like)[lane]);
    const uint32_t sm = ptx::sm_id();
    if (sm >= kMostSms) ptx::trap();
    places = &packed_maps<kTile>[sm][which][0];
  }

  // The group whose K-blocks are [k.first, k.last) of all; `like` the last call's where it is the
  // same.
  __device__ __forceinline__ void aim(int group, abi::BlockRange k) {
    if (group == here || k.first >= k.last) return;
    here = group;
    next = next + 1 == abi::kPackedPlaces ? 0 : next + 1;
    const int64_t before = int64_t{k.first} * abi::kBlockK;
    const auto width = static_cast<uint32_t>(k.last - k.first) * abi::kBlockK;
    __syncwarp();
    if (lane == 0) {
      ptx::replace_address(room, first + height * before);
      ptx::replace_width_and_pitch(room, width);
    }
    __syncwarp();
    ptx::publish_map(&places[next].map, room);
  }
  __device__ __forceinline__ const abi::TensorMap& map() const { return places[next].map; }

 private:
  const uint32_t room;
  const uint8_t* const first;
  const int64_t height;
  const int lane;
  MapPlace* places;
  int here = -1, next = 0;
};

}  // namespace oct::device
