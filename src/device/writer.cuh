// From accumulators to D: bias, C, the one rounding, and the stores.
//
// Accumulators are handled in units of 16 x 8 (WGMMA rows x columns): lane l holds, of rows l/4 and
// l/4 + 8, columns 2 (l % 4) and the next one: x, y of the upper row, z, w of the lower. Units of a
// tile are numbered along the columns first.
#pragma once

#include "device/pipeline.cuh"
#include "kernel_abi/float_bits.h"

namespace oct::device {

using abi::ElementType;
using abi::StorePath;

// Unit i of a warp's accumulators, as it passes through shared memory: pairs the other way round.
// NOTE: what is stored together has consecutive registers; in this order an accumulator and the
// WGMMA result of the same place lie in different banks of the register file, and the promotion's
// FFMA reads both at once, while tensor cores use the file too (dispatch stalls of 2 cycles an
// FFMA otherwise; docs/performance-log.md).
__device__ __forceinline__ float4 crossed(const float* acc) {
  return make_float4(acc[1], acc[0], acc[3], acc[2]);
}
__device__ __forceinline__ float4 crossed(float4 v) { return make_float4(v.y, v.x, v.w, v.z); }

__device__ __forceinline__ float read_element(const void* data, ElementType type, int64_t i) {
  if (type == ElementType::kF32) return static_cast<const float*>(data)[i];
  const uint16_t code = static_cast<const uint16_t*>(data)[i];
  if (type == ElementType::kBf16) return __uint_as_float(static_cast<uint32_t>(code) << 16);
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(code));
  return f;
}

// Four neighbours in a row of D or C, of one type.
struct FloatQuad {
  using Element = float;
  using Word = float4;
  static __device__ __forceinline__ Word load(const float* from) { return ptx::load_once4(from); }
  static __device__ __forceinline__ float4 floats(Word w) { return w; }
  static __device__ __forceinline__ void store(float* to, float4 x) {
    *reinterpret_cast<float4*>(to) = x;
  }
};
template <bool kF16>
struct HalfQuad {
  using Element = uint16_t;
  using Word = uint2;
  static __device__ __forceinline__ Word load(const uint16_t* from) {
    return ptx::load_once2(from);
  }
  static __device__ __forceinline__ float4 floats(Word w) {
    if constexpr (kF16) {
      const float2 x = ptx::unpack_f16(w.x), y = ptx::unpack_f16(w.y);
      return make_float4(x.x, x.y, y.x, y.y);
    } else {
      return make_float4(__uint_as_float(w.x << 16), __uint_as_float(w.x & 0xffff0000u),
                         __uint_as_float(w.y << 16), __uint_as_float(w.y & 0xffff0000u));
    }
  }
  static __device__ __forceinline__ void store(uint16_t* to, float4 x) {
    *reinterpret_cast<uint2*>(to) =
        kF16 ? make_uint2(ptx::pack_f16(x.x, x.y), ptx::pack_f16(x.z, x.w))
             : make_uint2(ptx::pack_bf16(x.x, x.y), ptx::pack_bf16(x.z, x.w));
  }
};

template <TileConfig kTile>
class Writer {
 public:
  __device__ __forceinline__ Writer(const KernelParams& params, const Tile<kTile>& its_tile,
                                    int lane_id)
      : p(params), at(its_tile), lane(lane_id) {
    d_offset = at.batch * p.out.batch_stride;
    c_offset = at.batch * p.add.batch_stride;
    bias_offset = at.batch * p.bias_batch_stride;
  }

  __device__ __forceinline__ bool by_rows() const { return p.store == StorePath::kRows; }

  __device__ __forceinline__ uint16_t* element_at(int m, int n) const {
    return static_cast<uint16_t*>(p.out.data) + d_offset + m * p.out.ld + n;
  }

  // A finished unit whose upper left corner is (row, col) of the problem, on WGMMA's axes.
  __device__ __forceinline__ void unit(float4 v, int row, int col) const {
    const int upper = row + (lane >> 2), left = col + 2 * (lane & 3);
    if (p.store != StorePath::kElements) {
      if constexpr (kTile.normal()) {
        if (left < p.n) {
          if (stored(upper)) pair(upper, left, v.x, v.y);
          if (stored(upper + 8)) pair(upper + 8, left, v.z, v.w);
        }
      } else {
        // Rows are columns of D here: transpose, so that a register holds two neighbours in D.
        uint32_t low = ptx::transpose_matrix(pack(v.x, v.y));
        uint32_t high = ptx::transpose_matrix(pack(v.z, v.w));
        const int m = col + (lane >> 2), n = row + 2 * (lane & 3);
        if (stored(m)) {
          if (is_zero(m)) low = high = 0;
          uint16_t* const d = element_at(m, n);
          if (n < p.n) *reinterpret_cast<uint32_t*>(d) = low;
          if (n + 8 < p.n) *reinterpret_cast<uint32_t*>(d + 8) = high;
        }
      }
      return;
    }
#pragma unroll 1
    for (int e = 0; e < 4; ++e) {
      const float x = e == 0 ? v.x : e == 1 ? v.y : e == 2 ? v.z : v.w;
      const int r = upper + 8 * (e >> 1), c = left + (e & 1);
      if (kTile.normal()) {
        element(r, c, x);
      } else {
        element(c, r, x);
      }
    }
  }

  // ---- 16 bytes of a row a lane (StorePath::kRows). NOTE: two elements a store, 16 bytes of each
  // row, take twice as long: L2 wants whole sectors of 32 bytes (docs/performance-log.md, sixth
  // state).

  // All units of a warp, swapped family: transposed on their way through the warp's staging.
  template <int kUnits, typename Corner>
  __device__ __forceinline__ void rows_of_registers(const float* acc, uint32_t staging,
                                                    Corner corner) const {
    // A unit is two matrices of 8 x 8, 128 bytes each, a token's 16 bytes one behind the other; of
    // the second one four tokens ahead, so that no bank is met twice when they are read.
    constexpr int kBytes = 256, kRoom = abi::kStagingBytes / kBytes;
    const auto place = [&](int unit, int half, int token) {
      return staging + unit * kBytes + half * 128 + ((token ^ half << 2) << 4);
    };
    const uint32_t to = place(lane >> 4, lane >> 3 & 1, lane & 7),
                   from = place(lane >> 4, lane & 1, lane >> 1 & 7);
#pragma unroll
    for (int first = 0; first < kUnits; first += kRoom) {
      __syncwarp();  // what lay here has been read
#pragma unroll
      for (int i = first; i < first + kRoom && i < kUnits; i += 2) {
        const float* x = acc + 4 * i;
        if (i + 1 < kUnits) {
          ptx::store_transposed(to + (i - first) * kBytes, pack(x[0], x[1]), pack(x[2], x[3]),
                                pack(x[4], x[5]), pack(x[6], x[7]));
        } else {
          ptx::store_transposed(to + (i - first) * kBytes, pack(x[0], x[1]), pack(x[2], x[3]));
        }
      }
      __syncwarp();
#pragma unroll
      for (int i = first; i < first + kRoom && i < kUnits; i += 2) {
        int row, col;
        corner(i + (lane >> 4), row, col);
        if (i + (lane >> 4) < kUnits) {
          store_row(ptx::load_shared_u4(from + (i - first) * kBytes), col + (lane >> 1 & 7),
                    row + 8 * (lane & 1));
        }
      }
    }
  }

  // Row lane % 16 of a unit, normal family: the sum of `ranges` partial sums that lie one behind
  // the other from `from` on, as lanes left them.
  __device__ __forceinline__ uint4 sum_row(uint32_t from, int ranges) const {
    // Row r lies in the quad of lanes 4 (r % 8), taken in another order by every pair of rows, so
    // that no bank is met twice.
    const int r = lane & 15, twist = r >> 1 & 3;
    from += (r & 7) * 64 + (r >> 3) * 8;
    float2 sum[4];
#pragma unroll
    for (int q = 0; q < 4; ++q) sum[q] = ptx::load_shared2(from + ((q ^ twist) << 4));
#pragma unroll 1
    for (int i = 1; i < ranges; ++i) {
      from += abi::kUnitBytes;
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        const float2 v = ptx::load_shared2(from + ((q ^ twist) << 4));
        sum[q].x = __fadd_rn(sum[q].x, v.x);
        sum[q].y = __fadd_rn(sum[q].y, v.y);
      }
    }
    uint32_t x[4], swapped[4];
#pragma unroll
    for (int q = 0; q < 4; ++q) x[q] = pack(sum[q].y, sum[q].x);  // crossed()
#pragma unroll
    for (int q = 0; q < 4; ++q) swapped[q] = twist & 1 ? x[q ^ 1] : x[q];
    return twist & 2 ? make_uint4(swapped[2], swapped[3], swapped[0], swapped[1])
                     : make_uint4(swapped[0], swapped[1], swapped[2], swapped[3]);
  }

  // Elements n .. n + 7 of row m.
  __device__ __forceinline__ void store_row(uint4 words, int m, int n) const {
    if (!stored(m) || n >= p.n) return;
    if (is_zero(m)) words = make_uint4(0, 0, 0, 0);
    *reinterpret_cast<uint4*>(element_at(m, n)) = words;
  }

  __device__ __forceinline__ uint32_t pack(float x, float y) const {
    return p.d_type == ElementType::kF16 ? ptx::pack_f16(x, y) : ptx::pack_bf16(x, y);
  }

 private:
  // Whether row m is written, and whether with zeros.
  __device__ __forceinline__ bool stored(int m) const {
    if constexpr (kTile.grouped) {
      return row_state(p, at, m) != RowState::kSkip;
    } else {
      return m < p.m;
    }
  }
  __device__ __forceinline__ bool is_zero(int m) const {
    if constexpr (kTile.grouped) {
      return row_state(p, at, m) == RowState::kZero;
    } else {
      return false;
    }
  }

  __device__ __forceinline__ void pair(int m, int n, float x, float y) const {
    if (is_zero(m)) x = y = 0.0f;
    const int64_t at = d_offset + m * p.out.ld + n;
    if constexpr (kTile.paired) {
      if (p.add.data != nullptr) {
        const int64_t c = c_offset + m * p.add.ld + n;
        x = __fadd_rn(x, read_element(p.add.data, p.d_type, c));
        y = __fadd_rn(y, read_element(p.add.data, p.d_type, c + 1));
      }
    }
    if (p.d_type == ElementType::kF32) {
      *reinterpret_cast<float2*>(static_cast<float*>(p.out.data) + at) = make_float2(x, y);
    } else {
      *reinterpret_cast<uint32_t*>(static_cast<uint16_t*>(p.out.data) + at) = pack(x, y);
    }
  }

  // Bias, then C, then one rounding. The adder and the conversions make every NaN canonical.
  __device__ __forceinline__ void element(int m, int n, float x) const {
    if (!stored(m) || n >= p.n) return;
    const bool zero = is_zero(m);
    if (zero) x = 0.0f;
    if (!zero && p.bias_type != ElementType::kNone) {
      x = __fadd_rn(x, read_element(p.bias, p.bias_type, bias_offset + n));
    }
    if (!zero && p.add.data != nullptr) {
      x = __fadd_rn(x, read_element(p.add.data, p.d_type, c_offset + m * p.add.ld + n));
    }
    const int64_t at = d_offset + m * p.out.ld + n;
    if (p.d_type == ElementType::kF32) {
      static_cast<float*>(p.out.data)[at] = x;
    } else {
      static_cast<uint16_t*>(p.out.data)[at] = static_cast<uint16_t>(pack(x, 0.0f));
    }
  }

  const KernelParams& p;
  const Tile<kTile>& at;
  const int lane;
  int64_t d_offset, c_offset, bias_offset;
};

// Writes all units of a warp's accumulators without an exchange. The code of a unit is long when
// bias or C are added, so it stands once, in a loop: units pass through the lane's own bytes of the
// warp's staging, four at a time, because registers cannot be indexed by a loop counter. `place(i,
// row, col)` gives the corner of unit i.
template <TileConfig kTile, int kUnits, typename Place4>
__device__ __forceinline__ void write_units(const Writer<kTile>& writer, const float* acc,
                                            uint32_t staging, int lane, Place4 corner) {
  if constexpr (!kTile.normal() && kUnits > 2) {
    if (writer.by_rows()) {
      writer.template rows_of_registers<kUnits>(acc, staging, corner);
      return;
    }
  }
  if constexpr (kUnits <= 2) {
#pragma unroll
    for (int i = 0; i < kUnits; ++i) {
      int row, col;
      corner(i, row, col);
      writer.unit(make_float4(acc[4 * i], acc[4 * i + 1], acc[4 * i + 2], acc[4 * i + 3]), row,
                  col);
    }
  } else {
    constexpr int kChunks = (kUnits + 3) / 4;
    const uint32_t mine = staging + lane * 16;
#pragma unroll 1
    for (int chunk = 0; chunk < kChunks; ++chunk) {
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
        if (c != chunk) continue;
#pragma unroll
        for (int i = 4 * c; i < 4 * c + 4 && i < kUnits; ++i) {
          ptx::store_shared4(mine + (i & 3) * abi::kUnitBytes, crossed(acc + 4 * i));
        }
      }
#pragma unroll 1
      for (int i = 4 * chunk; i < 4 * chunk + 4 && i < kUnits; ++i) {
        int row, col;
        corner(i, row, col);
        writer.unit(crossed(ptx::load_shared4(mine + (i & 3) * abi::kUnitBytes)), row, col);
      }
    }
  }
}

}  // namespace oct::device
