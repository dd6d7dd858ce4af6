// The product of plain_gemm.h for any width of vector; plain_gemm_avx2.cpp and
// plain_gemm_avx512.cpp supply the vectors. The order is the usual one: a block of B (kDepth x
// kWide) stays in the second-level cache or beyond, a block of A (kTall x kDepth) in the second, a
// sliver of B in the first, and the register tile runs along K.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "plain_gemm.h"

namespace oct::bench {
namespace {

// Ops: vector type Float, load, store, splat, fma.  Tile: kRows x (2 vectors).
template <class Ops, int kRows>
struct PlainBody {
  using Float = typename Ops::Float;
  static constexpr int kLanes = static_cast<int>(sizeof(Float) / sizeof(float));
  static constexpr int kColumns = 2 * kLanes;
  static constexpr int64_t kDepth = 256, kTall = kRows * 16, kWide = kColumns * 64;

  // out[k][i] = in[i][k] for i < tile, missing lines zero. Four lines at a time, so that what is
  // written is 16 bytes wide.
  static void pack(const float* in, int64_t ld, int64_t lines, int64_t depth, int tile,
                   float* out) {
    for (int64_t first = 0; first < lines; first += tile) {
      int64_t i = 0;
      for (; i + 4 <= tile && first + i + 4 <= lines; i += 4) {
        const float* line = in + (first + i) * ld;
        for (int64_t k = 0; k < depth; ++k) {
          float* to = out + k * tile + i;
          to[0] = line[k];
          to[1] = line[ld + k];
          to[2] = line[2 * ld + k];
          to[3] = line[3 * ld + k];
        }
      }
      for (; i < tile; ++i) {
        const bool there = first + i < lines;
        for (int64_t k = 0; k < depth; ++k) {
          out[k * tile + i] = there ? in[(first + i) * ld + k] : 0.0f;
        }
      }
      out += depth * tile;
    }
  }

  static void tile(const float* a, const float* b, int64_t depth, float (&out)[kRows][kColumns]) {
    Float acc[kRows][2];
    for (int r = 0; r < kRows; ++r) acc[r][0] = acc[r][1] = Float{};
    for (int64_t k = 0; k < depth; ++k) {
      const Float b0 = Ops::load(b), b1 = Ops::load(b + kLanes);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const Float x = Ops::splat(a[r]);
        acc[r][0] = Ops::fma(x, b0, acc[r][0]);
        acc[r][1] = Ops::fma(x, b1, acc[r][1]);
      }
      a += kRows;
      b += kColumns;
    }
    for (int r = 0; r < kRows; ++r) {
      Ops::store(&out[r][0], acc[r][0]);
      Ops::store(&out[r][kLanes], acc[r][1]);
    }
  }

  static void run(int64_t m, int64_t n, int64_t k, const float* a, const float* b, float* d,
                  std::vector<float>& scratch) {
    scratch.resize(static_cast<std::size_t>(kDepth * (kTall + kWide) + 16));
    float* packed_a = scratch.data();
    packed_a += (64 - reinterpret_cast<uintptr_t>(packed_a) % 64) / sizeof(float);
    float* packed_b = packed_a + kDepth * kTall;
    for (int64_t j0 = 0; j0 < n; j0 += kWide) {
      const int64_t wide = std::min(kWide, n - j0);
      for (int64_t k0 = 0; k0 < k; k0 += kDepth) {
        const int64_t depth = std::min(kDepth, k - k0);
        pack(b + j0 * k + k0, k, wide, depth, kColumns, packed_b);
        for (int64_t i0 = 0; i0 < m; i0 += kTall) {
          const int64_t tall = std::min(kTall, m - i0);
          pack(a + i0 * k + k0, k, tall, depth, kRows, packed_a);
          for (int64_t j = 0; j < wide; j += kColumns) {
            for (int64_t i = 0; i < tall; i += kRows) {
              alignas(64) float out[kRows][kColumns];
              tile(packed_a + i * depth, packed_b + j * depth, depth, out);
              const int64_t rows = std::min<int64_t>(kRows, tall - i);
              const int64_t columns = std::min<int64_t>(kColumns, wide - j);
              for (int64_t r = 0; r < rows; ++r) {
                float* row = d + (i0 + i + r) * n + j0 + j;
                if (k0 == 0) {
                  for (int64_t c = 0; c < columns; ++c) row[c] = out[r][c];
                } else {
                  for (int64_t c = 0; c < columns; ++c) row[c] += out[r][c];
                }
              }
            }
          }
        }
      }
    }
  }

  static double peak() {
    constexpr int kChains = 12, kRounds = 2'000'000;
    double best = 0;
    for (int repeat = 0; repeat < 5; ++repeat) {
      Float acc[kChains];
      for (int i = 0; i < kChains; ++i) acc[i] = Ops::splat(static_cast<float>(i));
      const Float x = Ops::splat(0.5f), y = Ops::splat(0.25f);
      const auto start = std::chrono::steady_clock::now();
      for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 16
        for (int i = 0; i < kChains; ++i) {
          acc[i] = Ops::fma(acc[i], x, y);
        }
      }
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      Float sum = acc[0];
      for (int i = 1; i < kChains; ++i) sum += acc[i];
      volatile float used = sum[0];
      (void)used;
      best = std::max(best, double{kRounds} * kChains * kLanes / seconds.count());
    }
    return best;
  }
};

}  // namespace
}  // namespace oct::bench
