// The 14 classes of input that the instruction model is tested with: what ordinary data looks like,
// and every corner where a different rule would give different bits. Deterministic for a given
// seed.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>

#include "golden/golden_file.h"
#include "kernel_abi/float_bits.h"

namespace oct::golden {

class Generator {
 public:
  Generator(uint32_t format, uint32_t input_class, uint64_t seed)
      : e4m3_(format == kE4m3),
        class_(input_class),
        random_(seed * 1000003 + format * 7919 + input_class) {}

  void fill(Section& s, uint32_t tile) {
    // Exponents of one tile lie in [base_, base_ + span_].
    const int low = e4m3_ ? -9 : -20, high = e4m3_ ? 8 : 20;
    span_ = between(0, high - low);
    base_ = between(low, high - span_);
    shrink_ = std::ldexp(1.0, tile & 1 ? between(-6, 0) : 0);
    tile_ = tile;
    for (uint32_t step = 0; step < s.steps; ++step) {
      for (int r = 0; r < kRows; ++r) fill_row(s.row(tile, step, r), false);
      for (int n = 0; n < kCols; ++n) fill_row(s.col(tile, step, n), true);
    }
    for (int i = 0; i < kTileC; ++i) s.c[std::size_t{tile} * kTileC + i] = accumulator();
  }

 private:
  int elements() const { return e4m3_ ? 32 : 16; }
  int between(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  bool one_in(int n) { return random_() % static_cast<uint64_t>(n) == 0; }
  double sign() { return random_() & 1 ? -1.0 : 1.0; }

  uint32_t encode(double x) const {
    const auto bits = std::bit_cast<uint32_t>(static_cast<float>(x));
    return e4m3_ ? bits::f32_to_e4m3(bits) : bits::f32_to_bf16(bits);
  }
  uint32_t power(int low, int high) {
    return encode(sign() * std::ldexp(1 + between(0, 127) / 128.0, between(low, high)));
  }
  uint32_t any_finite() {
    for (;;) {
      const auto x = static_cast<uint32_t>(random_() & (e4m3_ ? 0xff : 0xffff));
      if (e4m3_ ? (x & 0x7f) != 0x7f : (x >> 7 & 255) != 255) return x;
    }
  }
  uint32_t not_finite() {
    const uint32_t negative = random_() & 1 ? 1 : 0;
    if (e4m3_) return negative << 7 | 0x7f;
    return negative << 15 | (random_() & 1 ? 0x7f80u : 0x7f81u);
  }
  uint32_t f32(int low, int high) {
    return static_cast<uint32_t>(random_() & 0x807fffff) |
           static_cast<uint32_t>(between(low, high) + 127) << 23;
  }

  void fill_row(uint8_t* to, bool column) {
    const int big = between(0, elements() - 1);
    uint32_t before = 0;
    for (int k = 0; k < elements(); ++k) {
      const uint32_t x = element(column, k, k == big, before);
      before = x;
      if (e4m3_) {
        to[k] = static_cast<uint8_t>(x);
      } else {
        const auto code = static_cast<uint16_t>(x);
        std::memcpy(to + 2 * k, &code, 2);
      }
    }
  }

  uint32_t element(bool column, int k, bool big, uint32_t before) {
    switch (class_) {
      case 0:  // gaussian
      case 1:
      case 7:
      case 12: return encode(normal_(random_) * (e4m3_ ? 100 : 1) * (class_ == 0 ? shrink_ : 1));
      case 2: return power(base_, base_ + span_);  // wide exponents
      case 3:                                      // subnormals
        if (e4m3_) return static_cast<uint32_t>(random_() & (one_in(3) ? 0x9f : 0x87));
        if (column) return power(-20, 60);
        return static_cast<uint32_t>(random_() & (one_in(3) ? 0x83ff : 0x807f));
      case 4: {  // cancellation: pairs of equal magnitude
        if (!(k & 1)) return power(base_, base_ + span_);
        uint32_t x = before;
        if (!column) x ^= e4m3_ ? 0x80 : 0x8000;
        if (one_in(16)) x ^= 1;
        return e4m3_ && (x & 0x7f) == 0x7f ? x ^ 1 : x;
      }
      case 5:  // one large, the rest small
        if (column) return power(-2, 2);
        if (big) return encode(sign() * (e4m3_ ? 448 : 1024));
        return e4m3_ ? power(-9, 0) : power(-20, -8);
      case 6: return encode((tile_ & 1 ? 1.0 : sign()) * (448 - 32 * between(0, 2)));
      case 8:  // sparse
        if (random_() % 10 < 6) return random_() & 1 ? (e4m3_ ? 0x80u : 0x8000u) : 0u;
        return power(base_, base_ + span_);
      case 9:  // terms near the cut
        if (column) return encode(1.0);
        if (big) return encode(sign() * std::ldexp(1.0, e4m3_ ? 6 : 10));
        return e4m3_ ? power(-9, -5) : power(-18, -13);
      case 11:  // underflow
        if (e4m3_) return static_cast<uint32_t>(random_() & 0x8f);
        return power(-86 + span_ / 2, -66 + span_ / 2);
      case 13:  // NaN and Inf
        return one_in(3 * elements()) ? not_finite() : any_finite();
      default: return any_finite();
    }
  }

  uint32_t accumulator() {
    switch (class_) {
      case 1: {
        const double scale = e4m3_ ? 100 * 100 * 8 : 8;
        return std::bit_cast<uint32_t>(static_cast<float>(normal_(random_) * scale));
      }
      case 2:
      case 8: return one_in(8) ? 0 : f32(2 * base_ - 12, 2 * (base_ + span_) + 12);
      case 3:
        if (random_() & 1) return static_cast<uint32_t>(random_() & 0x807fffff);
        return e4m3_ ? f32(-30, -8) : f32(-126, -60);
      case 4: return one_in(3) ? 0 : f32(2 * base_ - 24, 2 * (base_ + span_));
      case 5: return random_() & 1 ? f32(-20, 12) : 0;
      case 6: return random_() & 1 ? f32(10, 40) : 0;
      case 7: return e4m3_ ? f32(17, 40) : f32(4, 30);
      case 9: return f32(-10, 12);
      case 10: return f32(-126, 127);
      case 11:
        return tile_ & 1
                   ? 0
                   : static_cast<uint32_t>(random_() & (random_() & 1 ? 0x8000ffffu : 0x807fffffu));
      case 12: {
        auto c = static_cast<uint32_t>(random_());
        if (one_in(4)) c = (c & 0x80000000u) | 0x7f800000u | (random_() & 1 ? 0 : c & 0x7fffff);
        return c;
      }
      case 13:
        if (!one_in(6)) return f32(-20, 20);
        return static_cast<uint32_t>(random_() & 0x80000000u) | 0x7f800000u |
               (random_() & 1 ? 0u : 1u << (random_() % 23));
      default: return 0;
    }
  }

  bool e4m3_;
  uint32_t class_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  int base_ = 0, span_ = 0;
  double shrink_ = 1;
  uint32_t tile_ = 0;
};

}  // namespace oct::golden
