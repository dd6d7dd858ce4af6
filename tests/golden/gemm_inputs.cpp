// See gemm_inputs.h. The conversions from integers to floating point below are exact, and no
// expression draws twice: the order would be the compiler's.
#include "golden/gemm_inputs.h"

#include <bit>
#include <cstring>

#include "core/extents.h"
#include "core/float_types.h"
#include "core/math.h"
#include "golden/golden_file.h"
#include "support/random.h"

namespace oct::golden {
namespace {

using core::ceil_div;
using core::round_up;
using testing_support::Buffer;
using testing_support::Random;

constexpr int64_t kGuard = 256;                             // bytes before and behind D
constexpr uint8_t kPaddingByte = 0xff, kOutputByte = 0xa5;  // 0xff: NaN as e4m3 and as FP32

uint32_t one_of(Random& random, uint32_t count) {
  return static_cast<uint32_t>(random.bits() % count);
}

uint8_t any_finite(Random& random) {
  const auto code = static_cast<uint8_t>(random.bits());
  return (code & 0x7fu) == bits::kNanE4m3 ? static_cast<uint8_t>(code ^ 1u) : code;
}

uint8_t gaussian(Random& random) {  // of standard deviation 104: eight bytes, halved
  const uint64_t x = random.bits();
  int sum = -1020;
  for (int shift = 0; shift < 64; shift += 8) sum += static_cast<int>(x >> shift & 0xff);
  return core::f32_to_e4m3(static_cast<float>(sum) * 0.5f);
}

// One row of A or B. The classes are those of golden_file.h.
class RowFiller {
 public:
  RowFiller(Random& random, uint32_t input_class, bool is_b)
      : random_(random), class_(input_class), is_b_(is_b) {}

  void fill(uint8_t* row, int64_t k) {
    const uint32_t big = one_of(random_, 32);
    const bool one_sign = one_of(random_, 2) == 0;
    uint8_t before = 0;
    for (int64_t i = 0; i < k; ++i) {
      before = row[i] = element(i, i % 32 == big, one_sign, k, before);
    }
  }

 private:
  uint8_t element(int64_t i, bool big, bool one_sign, int64_t k, uint8_t before) {
    const uint32_t sign = static_cast<uint32_t>(random_.bits() >> 63) << 7;
    const auto within = [&](uint32_t first, uint32_t last) {  // codes, with a random sign
      return static_cast<uint8_t>(sign | (first + one_of(random_, last - first + 1)));
    };
    switch (class_) {
      case 2: return within(0, 0x7e);                              // wide exponents
      case 3: return within(0, one_of(random_, 3) ? 0x07 : 0x1f);  // subnormals
      case 4:                                                      // cancellation, in pairs
        if (i % 2 == 0) return within(0x08, 0x77);
        if (one_of(random_, 16) == 0) before ^= 1;
        return is_b_ ? before : static_cast<uint8_t>(before ^ 0x80u);
      case 5:  // one large, the rest small
        if (is_b_) return within(0x28, 0x48);
        return big ? static_cast<uint8_t>(sign | bits::kMaxE4m3) : within(0x00, 0x30);
      case 6: return static_cast<uint8_t>((one_sign ? 0 : sign) | (0x7c + one_of(random_, 3)));
      case 8:  // sparse
        return one_of(random_, 10) < 6 ? static_cast<uint8_t>(sign) : within(0x10, 0x70);
      case 9:  // terms near the cut
        if (is_b_) return 0x38;
        return big ? static_cast<uint8_t>(sign | 0x68) : within(0x01, 0x10);
      case 10: return any_finite(random_);
      case 11: return within(0x00, 0x07);  // underflow
      case 13:                             // NaN, in every fourth row or so
        if (one_of(random_, 4 * static_cast<uint32_t>(k)) == 0) {
          return static_cast<uint8_t>(sign | bits::kNanE4m3);
        }
        return any_finite(random_);
      default: return gaussian(random_);
    }
  }

  Random& random_;
  const uint32_t class_;
  const bool is_b_;
};

// A positive FP32 number of an exponent from first to last, as bits.
uint32_t positive(Random& random, int first, int last) {
  const auto exponent = static_cast<uint32_t>(random.between(first, last) + 127);
  return exponent << 23 | static_cast<uint32_t>(random.bits() & 0x7fffffu);
}

uint32_t scale(Random& random, ScaleClass kind) {
  switch (kind) {
    case ScaleClass::kPowersOfTwo: return positive(random, -12, 4) & 0x7f800000u;
    case ScaleClass::kTiny: return positive(random, -76, -62);
    case ScaleClass::kHuge: return positive(random, 48, 58);
    case ScaleClass::kWide: return positive(random, -126, 127);
    case ScaleClass::kZerosAndSigns: {
      const uint32_t which = one_of(random, 8), sign = one_of(random, 2) << 31;
      if (which == 0) return sign;
      if (which == 1) return sign | static_cast<uint32_t>(random.bits() & 0x7fffffu);
      return sign | positive(random, -10, 2);
    }
    case ScaleClass::kNotFinite: {
      constexpr uint32_t kSpecial[] = {0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffc12345u};
      if (one_of(random, 25) == 0) return kSpecial[one_of(random, 4)];
      return positive(random, -10, -6);
    }
    default: return positive(random, -10, -6);
  }
}

// C and bias: about the size of results, some zeros, with `special` a NaN or infinity among them.
void fill_values(Random& random, octet_type type, bool special, uint8_t* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t sign = one_of(random, 2) << 31;
    uint32_t x = sign | positive(random, -6, 9);
    if (one_of(random, 16) == 0) x = sign;
    if (special && one_of(random, 40) == 0) x = sign | 0x7f800000u | one_of(random, 2) << 22;
    core::store_element(to, type, i, std::bit_cast<float>(x));
  }
}

Buffer filled(int64_t bytes, uint8_t byte) {
  Buffer buffer(bytes);
  buffer.fill(byte);
  return buffer;
}

octet_matrix strided(Random& random, int64_t rows, int64_t cols, int64_t unit, int64_t groups) {
  octet_matrix x{};
  x.rows = rows;
  x.cols = cols;
  x.ld = round_up(cols, unit) + unit * random.between(0, 2);
  if (groups > 1) x.group_stride = rows * x.ld + unit * random.between(0, 2);
  return x;
}

int64_t extent(const octet_matrix& x, int64_t groups) {
  return (groups - 1) * x.group_stride + x.rows * x.ld;
}

}  // namespace

GemmInputs::GemmInputs(const octet_gemm_problem& problem, uint32_t input_class, ScaleClass scales)
    : problem_(problem) {
  const int64_t m = problem.m, n = problem.n, k = problem.k, groups = problem.groups;
  const int64_t blocks = ceil_div(k, 128), d_bytes = core::size_of(problem.d_type);
  const bool special = input_class == 13;
  Random random(problem.seed * uint64_t{1000003} + input_class * 101 +
                static_cast<uint32_t>(scales));
  shape_.struct_size = sizeof shape_;

  const auto operand = [&](octet_matrix& x, int64_t rows, bool is_b) {
    x = strided(random, rows, k, 16, groups);
    Buffer buffer = filled(extent(x, groups), kPaddingByte);
    RowFiller filler(random, input_class, is_b);
    for (int64_t g = 0; g < groups; ++g) {
      for (int64_t r = 0; r < rows; ++r) {
        filler.fill(buffer.data() + g * x.group_stride + r * x.ld, k);
      }
    }
    return buffer;
  };
  a = operand(shape_.a, m, false);
  b = operand(shape_.b, n, true);

  const auto scale_matrix = [&](octet_scale_matrix& x, octet_scale_layout layout, int64_t rows,
                                int64_t& begin) {
    const int64_t unit = layout == OCTET_COLUMN_MAJOR ? 4 : 1, pad = random.between(0, 3);
    if (layout == OCTET_ROW_MAJOR) {
      x.row_stride = blocks + pad;
      x.k_stride = 1;
    } else {
      x.row_stride = 1;
      x.k_stride = round_up(rows, unit) + unit * pad;
    }
    const int64_t size = layout == OCTET_ROW_MAJOR ? rows * x.row_stride : blocks * x.k_stride;
    if (groups > 1) x.group_stride = round_up(size, unit) + unit * random.between(0, 3);
    begin = layout == OCTET_COLUMN_MAJOR ? 0 : 4 * random.between(0, 3);
    Buffer buffer = filled(begin + 4 * ((groups - 1) * x.group_stride + size + 4), kPaddingByte);
    for (int64_t g = 0; g < groups; ++g) {
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t kb = 0; kb < blocks; ++kb) {
          const uint32_t value = scale(random, scales);
          std::memcpy(buffer.data() + begin +
                          4 * (g * x.group_stride + r * x.row_stride + kb * x.k_stride),
                      &value, 4);
        }
      }
    }
    return buffer;
  };
  sfa = scale_matrix(shape_.sfa, problem.sfa_layout, m, sfa_begin_);
  sfb = scale_matrix(shape_.sfb, problem.sfb_layout, ceil_div(n, 128), sfb_begin_);

  // Three times of four D's rows are aligned as the copy engine wants them.
  const bool even = random.between(0, 3) != 0;
  shape_.d = strided(random, m, n, even ? 8 : 1, groups);
  d_begin_ = kGuard + (even ? 0 : d_bytes * random.between(1, 7));
  d = filled(d_begin_ + extent(shape_.d, groups) * d_bytes + kGuard, kOutputByte);
  if (problem.accumulate) {
    const bool in_place = random.between(0, 1) == 0;
    shape_.c = in_place ? shape_.d : strided(random, m, n, 1, groups);
    if (!in_place) c = filled(extent(shape_.c, groups) * d_bytes, kPaddingByte);
    uint8_t* to = in_place ? d.data() + d_begin_ : c.data();
    for (int64_t g = 0; g < groups; ++g) {
      for (int64_t r = 0; r < m; ++r) {
        fill_values(random, problem.d_type, special,
                    to + (g * shape_.c.group_stride + r * shape_.c.ld) * d_bytes, n);
      }
    }
  }
  if (problem.bias_type != OCTET_NONE) {
    const int64_t bytes = core::size_of(problem.bias_type);
    shape_.bias_group_stride = n + random.between(0, 3);
    bias = filled(((groups - 1) * shape_.bias_group_stride + n) * bytes, kPaddingByte);
    for (int64_t g = 0; g < groups; ++g) {
      fill_values(random, problem.bias_type, special,
                  bias.data() + g * shape_.bias_group_stride * bytes, n);
    }
  }
}

octet_gemm_args GemmInputs::args(const GemmMemory& memory) const {
  octet_gemm_args x = shape_;
  x.a.data = memory.a;
  x.b.data = memory.b;
  x.sfa.data = reinterpret_cast<const float*>(static_cast<char*>(memory.sfa) + sfa_begin_);
  x.sfb.data = reinterpret_cast<const float*>(static_cast<char*>(memory.sfb) + sfb_begin_);
  x.d.data = static_cast<char*>(memory.d) + d_begin_;
  x.c.data = c.size() > 0 ? memory.c : problem_.accumulate ? x.d.data : nullptr;
  x.bias = bias.size() > 0 ? memory.bias : nullptr;
  return x;
}

GemmMemory GemmInputs::host_memory(uint8_t* d_memory) const {
  return {a.data(), b.data(), sfa.data(), sfb.data(), c.data(), bias.data(), d_memory};
}

uint64_t GemmInputs::checksum() const {
  uint64_t sum = 0;
  for (const Buffer* buffer : {&a, &b, &sfa, &sfb, &c, &bias, &d}) {
    const auto size = static_cast<std::size_t>(buffer->size());
    sum = sum * 0x100000001b3u + fnv1a(buffer->data(), size) + size;
  }
  return sum;
}

template <typename Visit>
void GemmInputs::for_each_row(Visit visit) const {
  const int64_t element = core::size_of(problem_.d_type);
  for (int64_t g = 0; g < problem_.groups; ++g) {
    for (int64_t r = 0; r < problem_.m; ++r) {
      visit(d_begin_ + (g * shape_.d.group_stride + r * shape_.d.ld) * element,
            problem_.n * element);
    }
  }
}

std::vector<uint8_t> GemmInputs::elements(const uint8_t* d_memory) const {
  std::vector<uint8_t> out;
  for_each_row([&](int64_t begin, int64_t bytes) {
    out.insert(out.end(), d_memory + begin, d_memory + begin + bytes);
  });
  return out;
}

bool GemmInputs::outside_is_untouched(const uint8_t* d_memory) const {
  int64_t end = 0;
  bool same = true;
  const auto compare = [&](int64_t first, int64_t last) {
    same = same && std::memcmp(d_memory + first, d.data() + first,
                               static_cast<std::size_t>(last - first)) == 0;
  };
  for_each_row([&](int64_t begin, int64_t bytes) {
    compare(end, begin);
    end = begin + bytes;
  });
  compare(end, d.size());
  return same;
}

}  // namespace oct::golden
