// Where a group's K lies, as the scheduler warp of a K-grouped kernel finds it, walked on the host
// with the device's code and compared with what the CPU backend takes: good metadata and bad.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/groups.h"
#include "core/problem.h"
#include "cuda/launch_params.h"
#include "support/host_warp.h"
#include "support/random.h"

namespace oct::abi {
namespace {

using testing_support::HostWarp;
using testing_support::Random;

template <bool kPacked>
void compare(const octet_gemm_problem& p, const octet_gemm_args& args, int step) {
  const KGroups groups = cuda::make_k_groups(p, args);
  KGroupWalk<kPacked, HostWarp> walk(groups, HostWarp{});
  int64_t start = 0;
  for (int64_t g = 0; g < p.groups; ++g) {
    const core::Range want = core::group_k(p, args, g, start);
    start = want.last;
    if (g % step != 0) continue;  // a CTA does not meet every group
    const KRange got = walk.find(static_cast<int32_t>(g));
    if (want.last > want.first) {
      ASSERT_EQ(int64_t{got.first} * 128, want.first) << "group " << g << " of " << p.groups;
    }
    ASSERT_EQ(got.length, want.last - want.first) << "group " << g << " of " << p.groups;
    ASSERT_EQ(got.blocks, (got.length + 127) / 128);
    ASSERT_LE(int64_t{got.first} + got.blocks, (args.a.cols + 127) / 128);
  }
}

TEST(KernelAbiKGroups, TheDeviceFindsWhatTheProcessorTakes) {
  Random random(20261130);
  for (int i = 0; i < 2000; ++i) {
    octet_gemm_problem p = core::default_problem();
    p.grouping = OCTET_K_GROUPED;
    p.groups = random.chance(0.3) ? random.between(65, 512) : random.between(1, 70);
    p.packed = random.chance(0.5) ? 1 : 0;
    p.index_type = random.pick({OCTET_I32, OCTET_I64});
    octet_gemm_args args{};
    args.a.cols = random.chance(0.1)   ? core::kMaxSize / 128 * 128
                  : random.chance(0.5) ? random.between(0, 400) * 128
                                       : random.between(0, 50000);
    if (p.packed) args.a.cols = args.a.cols / 128 * 128;
    const bool bad = random.chance(0.5);
    std::vector<int64_t> starts, counts;
    int64_t at = 0;
    for (int64_t g = 0; g < p.groups; ++g) {
      const int64_t length = random.pick<int64_t>({0, 0, 1, 127, 128, 129, 256, 700});
      starts.push_back(at);
      counts.push_back(p.packed ? length / 128 * 128 : length);
      at += (length + 127) / 128 * 128;
      if (!bad || !random.chance(0.3)) continue;
      const int64_t wrong =
          random.pick<int64_t>({-1, -1000, INT32_MAX, INT32_MIN, args.a.cols, args.a.cols + 1, 77});
      (random.chance(0.5) ? starts : counts).back() =
          p.index_type == OCTET_I64 && random.chance(0.3) ? wrong * (int64_t{1} << 31) : wrong;
    }
    const std::vector<int32_t> narrow_starts(starts.begin(), starts.end()),
        narrow_counts(counts.begin(), counts.end());
    const bool wide = p.index_type == OCTET_I64;
    args.group_offsets = wide ? static_cast<const void*>(starts.data()) : narrow_starts.data();
    args.group_counts = wide ? static_cast<const void*>(counts.data()) : narrow_counts.data();
    for (const int step : {1, 3, 50}) {
      if (p.packed) {
        compare<true>(p, args, step);
      } else {
        compare<false>(p, args, step);
      }
    }
  }
}

}  // namespace
}  // namespace oct::abi
