// Random small problems for the tests of the CPU kernels: one class of input for every way through
// the arithmetic, odd sizes and leading dimensions, guard bands, poisoned outputs and padding.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/float_types.h"
#include "core/views.h"
#include "ref/gemm.h"

namespace oct::kernel_problems {

using core::DenseView;
using Random = std::mt19937_64;

inline int64_t draw(Random& r, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(r() % static_cast<uint64_t>(high - low + 1));
}
// Small values as likely as large ones.
inline int64_t draw_log(Random& r, int64_t low, int64_t high) {
  const double x =
      std::uniform_real_distribution<double>(std::log(static_cast<double>(low)),
                                             std::log(static_cast<double>(high) + 1))(r);
  return std::min(high, static_cast<int64_t>(std::exp(x)));
}
inline float gaussian(Random& r) { return std::normal_distribution<float>()(r); }

// ------------------------------------------------------------------------------------- inputs ----

enum class Codes {
  kGaussian,
  kWideExponents,
  kSubnormals,
  kCancellation,
  kOneLarge,
  kLargest,
  kZeros,
  kAnyFinite,
  kAnyCode,
  kFewNans,
  kCount
};

inline uint8_t e4m3_code(Random& r, Codes codes, int64_t k, bool is_b) {
  const auto sign = static_cast<uint8_t>(r() & 0x80);
  const auto exponent = [&](int64_t low, int64_t high) {
    return static_cast<uint8_t>(sign | draw(r, low, high) << 3 | (r() & 7));
  };
  switch (codes) {
    case Codes::kGaussian: return core::f32_to_e4m3(gaussian(r) * 120);
    case Codes::kWideExponents: return exponent(0, 14);
    case Codes::kSubnormals: return exponent(0, r() % 4 == 0 ? 1 : 0);
    case Codes::kCancellation:  // pairs of opposite products, and something small
      if (is_b) return static_cast<uint8_t>(0x38 + 8 * (k / 2 % 3));
      if (k % 7 == 0) return exponent(0, 5);
      return static_cast<uint8_t>(0x58 + k / 2 % 8 + (k % 2) * 0x80);
    case Codes::kOneLarge: return k % 32 == 5 ? uint8_t{0x7e} : exponent(0, 7);
    case Codes::kLargest: return static_cast<uint8_t>(sign * (r() % 8 == 0) | 0x7e);
    case Codes::kZeros: return r() % 16 == 0 ? exponent(0, 14) : sign;
    case Codes::kAnyFinite: {
      const auto code = static_cast<uint8_t>(r());
      return (code & 0x7f) == 0x7f ? uint8_t{0x7e} : code;
    }
    case Codes::kAnyCode: return static_cast<uint8_t>(r());
    default:
      if (r() % 997 == 0) return static_cast<uint8_t>(sign | 0x7f);
      return core::f32_to_e4m3(gaussian(r) * 120);
  }
}

inline uint16_t bf16_code(Random& r, Codes codes, int64_t k, bool is_b) {
  const auto exponent = [&](int64_t low, int64_t high) {
    return static_cast<uint16_t>((r() & 0x807f) | static_cast<uint64_t>(draw(r, low, high)) << 7);
  };
  switch (codes) {
    case Codes::kGaussian: return core::f32_to_bf16(gaussian(r));
    case Codes::kWideExponents: return exponent(100, 150);
    case Codes::kSubnormals: return exponent(0, is_b ? 130 : 2);
    case Codes::kCancellation:
      if (is_b) return static_cast<uint16_t>(0x3f80 + 0x80 * (k / 2 % 3));
      if (k % 7 == 0) return exponent(100, 120);
      return static_cast<uint16_t>(0x4180 + k / 2 % 8 + (k % 2) * 0x8000);
    case Codes::kOneLarge: return k % 16 == 5 ? exponent(135, 140) : exponent(110, 127);
    case Codes::kLargest: return exponent(186, 192);  // products about 2^128
    case Codes::kZeros:
      return r() % 16 == 0 ? exponent(120, 130) : static_cast<uint16_t>(r() & 0x8000);
    case Codes::kAnyFinite: return exponent(0, 254);
    case Codes::kAnyCode: return exponent(0, 255);
    default:
      if (r() % 997 == 0) return static_cast<uint16_t>((r() & 0x8000) | 0x7f80 | (r() % 2));
      return exponent(40, 90);  // products near and below the smallest float
  }
}

enum class Scales { kOrdinary, kTinyAndHuge, kPowers, kZeros, kNotFinite, kCount };

inline float scale(Random& r, Scales scales) {
  const float x = std::fabs(gaussian(r)) * 0.01f + 1e-6f;
  switch (scales) {
    case Scales::kOrdinary: return x;
    case Scales::kTinyAndHuge:
      return std::ldexp(1.0f + static_cast<float>(r() % 1000) / 1000,
                        static_cast<int>(draw(r, -140, 126)));
    case Scales::kPowers: return std::ldexp(1.0f, static_cast<int>(draw(r, -20, 5)));
    case Scales::kZeros: return r() % 2 ? 0.0f : -x;
    default:
      switch (r() % 8) {
        case 0: return std::numeric_limits<float>::infinity();
        case 1: return -std::numeric_limits<float>::quiet_NaN();
        default: return x;
      }
  }
}

// ------------------------------------------------------------------------------------ problem ----

constexpr int64_t kGuard = 64;  // elements of D before the first row and behind the last

// A view with the memory it points to.
struct Problem {
  DenseView view;
  std::vector<uint16_t> a, b;  // codes; e4m3 operands use the bytes
  std::vector<float> sfa, sfb, bias_values, c_values;
  std::vector<uint8_t> bias, c, d;
  bool alias = false;  // C is D
  std::string name;

  std::vector<uint8_t> poisoned() const {
    if (alias) return d;
    return std::vector<uint8_t>(d.size(), 0xa5);
  }
};

inline std::vector<uint8_t> stored(const std::vector<float>& values, octet_type type) {
  std::vector<uint8_t> bytes(values.size() * static_cast<std::size_t>(core::size_of(type)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    core::store_element(bytes.data(), type, static_cast<int64_t>(i), values[i]);
  }
  return bytes;
}

inline Problem make(Random& r, octet_type in_type, Codes codes, Scales scales) {
  Problem p;
  DenseView& v = p.view;
  const bool e4m3 = in_type == OCTET_E4M3;
  v.m = draw_log(r, 1, 40);
  v.n = draw_log(r, 1, 150);
  v.k = r() % 40 == 0 ? 0 : draw_log(r, 1, r() % 4 == 0 ? 1200 : 300);
  v.in_type = in_type;
  v.a_ld = v.k + draw(r, 0, 9);
  v.b_ld = v.k + draw(r, 0, 9);
  v.split = r() % 2 ? 1 : static_cast<int>(draw(r, 1, 8));
  constexpr octet_type kTypes[] = {OCTET_F32, OCTET_BF16, OCTET_F16};
  v.d_type = kTypes[r() % 3];
  v.d_ld = v.n + draw(r, 0, 7);

  // Padding between rows is poisoned too: NaN codes.
  p.a.assign(static_cast<std::size_t>(v.m * v.a_ld + 1), 0xffff);
  p.b.assign(static_cast<std::size_t>(v.n * v.b_ld + 1), 0xffff);
  const auto fill = [&](std::vector<uint16_t>& data, int64_t rows, int64_t ld, bool is_b) {
    auto* bytes = reinterpret_cast<uint8_t*>(data.data());
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t k = 0; k < v.k; ++k) {
        if (e4m3) {
          bytes[i * ld + k] = e4m3_code(r, codes, k, is_b);
        } else {
          data[static_cast<std::size_t>(i * ld + k)] = bf16_code(r, codes, k, is_b);
        }
      }
    }
  };
  fill(p.a, v.m, v.a_ld, false);
  fill(p.b, v.n, v.b_ld, true);
  v.a = p.a.data();
  v.b = p.b.data();

  const int64_t blocks = (v.k + 127) / 128;
  const auto scale_matrix = [&](std::vector<float>& data, int64_t rows) {
    core::ScaleView s;
    if (r() % 2) {
      s.row_stride = 1;
      s.k_stride = rows + draw(r, 0, 5);
    } else {
      s.k_stride = 1;
      s.row_stride = blocks + draw(r, 0, 3);
    }
    data.assign(static_cast<std::size_t>(rows * s.row_stride + blocks * s.k_stride + 1), 0);
    for (float& x : data) x = scale(r, scales);
    s.data = data.data();
    return s;
  };
  if (e4m3) {
    v.sfb_rows = r() % 2 ? 128 : 1;
    v.sfa = scale_matrix(p.sfa, v.m);
    v.sfb = scale_matrix(p.sfb, (v.n + v.sfb_rows - 1) / v.sfb_rows);
  }

  const auto values = [&](int64_t count) {
    std::vector<float> x(static_cast<std::size_t>(count));
    for (float& y : x) y = gaussian(r) * std::ldexp(1.0f, static_cast<int>(draw(r, -8, 8)));
    return x;
  };
  if (r() % 3 == 0) {
    v.bias_type = kTypes[r() % 3];
    p.bias = stored(values(v.n), v.bias_type);
    v.bias = p.bias.data();
  }
  const int64_t size = core::size_of(v.d_type);
  const int64_t elements = v.m * v.d_ld + 2 * kGuard;
  if (r() % 3 == 0) {
    p.alias = r() % 2;
    if (p.alias) {
      p.d = stored(values(elements), v.d_type);
      v.c_ld = v.d_ld;
    } else {
      v.c_ld = v.n + draw(r, 0, 7);
      p.c = stored(values(v.m * v.c_ld), v.d_type);
    }
  }
  if (!p.alias) p.d.assign(static_cast<std::size_t>(elements * size), 0xa5);
  p.name = std::string(e4m3 ? "e4m3" : "bf16") + " codes " +
           std::to_string(static_cast<int>(codes)) + " scales " +
           std::to_string(static_cast<int>(scales)) + " m " + std::to_string(v.m) + " n " +
           std::to_string(v.n) + " k " + std::to_string(v.k) + " split " + std::to_string(v.split) +
           " sfb_rows " + std::to_string(v.sfb_rows) + " d_type " + std::to_string(v.d_type) +
           (v.bias ? " bias" : "") +
           (p.alias       ? " C is D"
            : p.c.empty() ? ""
                          : " C");
  return p;
}

// The problem's view with D in `d`.
inline DenseView placed(const Problem& p, std::vector<uint8_t>& d) {
  DenseView v = p.view;
  v.d = d.data() + kGuard * core::size_of(v.d_type);
  v.c = p.alias ? v.d : p.c.empty() ? nullptr : static_cast<const void*>(p.c.data());
  return v;
}

inline std::vector<uint8_t> expected(const Problem& p) {
  std::vector<uint8_t> d = p.poisoned();
  core::Work work;
  work.gemms.push_back(placed(p, d));
  ref::run(work);
  return d;
}

// Where the first difference is, guard bands included.
inline ::testing::AssertionResult equal(const Problem& p, const std::vector<uint8_t>& got,
                                        const std::vector<uint8_t>& want) {
  if (got == want) return ::testing::AssertionSuccess();
  const int64_t size = core::size_of(p.view.d_type);
  int64_t wrong = 0, first = -1;
  for (int64_t i = 0; i * size < static_cast<int64_t>(got.size()); ++i) {
    if (std::memcmp(&got[static_cast<std::size_t>(i * size)],
                    &want[static_cast<std::size_t>(i * size)],
                    static_cast<std::size_t>(size)) != 0) {
      if (wrong++ == 0) first = i;
    }
  }
  uint32_t x = 0, y = 0;
  std::memcpy(&x, &got[static_cast<std::size_t>(first * size)], static_cast<std::size_t>(size));
  std::memcpy(&y, &want[static_cast<std::size_t>(first * size)], static_cast<std::size_t>(size));
  const int64_t at = first - kGuard;
  return ::testing::AssertionFailure()
         << p.name << ": " << wrong << " wrong, first at D[" << at / p.view.d_ld << ", "
         << at % p.view.d_ld << "] (" << at << " of " << p.view.m * p.view.d_ld << "): got "
         << std::hex << x << ", want " << y;
}

}  // namespace oct::kernel_problems
