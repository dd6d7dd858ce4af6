// See verify_case.h.
#include "verify_case.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

namespace octet::tool {
namespace {

// Between them: every result type, bias type and scale layout; every way a kernel stores D (boxes
// of the copy engine, pairs, single elements); K below, at and between multiples of 128; tiles that
// straddle blocks of scales; more tiles than CTAs, and odd numbers of CTAs.
constexpr CaseSpec kCases[] = {
    {"dense_m70n700k4231", 64, 1, 1, 0, 1, false, false},
    {"dense_m512n1536k1024", 16, 0, 0, 0, 0, false, false},
    {"dense_m133n2112k1152_f16_biasbf16", 16, 0, 8, 0, 0, false, false},
    {"dense_m257n1130k1030_f32_acc_sfaodd_sms37", 16, 2, 3, 1, 1, true, false},
    {"dense_m129n260k900_f32", 16, 1, 0, 0, 2, false, true},
    {"batched_g3m65n257k640_acc_bias", 16, 0, 5, 1, 1, false, false},
    {"dense_m300n1000k576_f32_sfarow", 16, 3, 2, 2, 1, false, false},
    {"dense_m1n129k103_f32", 16, 0, 1, 1, 0, false, false},
    {"dense_m64n7168k512", 16, 0, 0, 0, 0, false, false},
    {"batched_g5m16n576k2176_f16", 17, 1, 0, 0, 1, false, false},
    {"dense_m520n1300k640_sfbodd_sms7", 16, 0, 4, 4, 3, false, false},
    {"dense_m1040n384k300_acc_biasf16_pdl", 16, 0, 0, 0, 0, false, false},
    {"dense_m17n200k0_f32_bias", 16, 0, 3, 1, 0, false, false},
    {"offsets_g9m90n700k1031_i64", 64, 1, 0, 0, 1, false, false},
    {"offsets_g40m5n300k640_f32_bias_sms37", 3, 0, 1, 1, 0, false, true},
    {"contiguous_g6m150n520k515", 2, 0, 0, 0, 0, false, false},
    {"contiguous_g7m40n130k384_align64_keeppad_f16_acc", 2, 1, 2, 1, 1, true, false},
    {"aligned_g8m77n1000k576_align8", 2, 0, 0, 0, 0, false, false},
    {"masked_g5m70n776k1030", 2, 0, 0, 0, 1, false, false},
    {"masked_g70m3n264k300_maxm9_pdl", 2, 0, 8, 0, 0, false, false},
    {"dense_m300n520k1031_1d1d_f32_acc", 8, 1, 0, 0, 1, false, false},
    {"dense_m133n257k640_1d1d_sfarow_sfbodd", 8, 0, 1, 1, 1, false, true},
    {"kgrouped_g6m300n520k300_f32_acc", 3, 1, 4, 0, 1, true, false},
    {"kgrouped_g9m65n130k200_i64_sfbrow", 3, 0, 2, 0, 1, false, false},
    {"kgrouped_g5m300n264k256_f32_acc_packed", 3, 0, 0, 0, 0, false, false},
};

constexpr int64_t kGuard = 512;  // bytes on either side of D
constexpr uint8_t kNanCode = 0x7f, kNanByte = 0xff;

constexpr int64_t round_up(int64_t x, int64_t unit) { return ceil_div(x, unit) * unit; }

int64_t size_of(octet_type type) {
  return type == OCTET_F32                         ? 4
         : type == OCTET_BF16 || type == OCTET_F16 ? 2
         : type == OCTET_NONE                      ? 0
                                                   : 1;
}

// The numbers of one seed, the same on every machine (SplitMix64).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t bits() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // The sum of four uniform numbers: bell-shaped, of variance 1.
  float bell() {
    const uint64_t x = bits();
    const auto sum = static_cast<int64_t>((x & 0xffff) + ((x >> 16) & 0xffff) +
                                          ((x >> 32) & 0xffff) + (x >> 48));
    return static_cast<float>(sum - 2 * 0xffff) * (1.7320508f / 65536);
  }

 private:
  uint64_t state_;
};

uint8_t guard_byte(int64_t i) { return static_cast<uint8_t>(i * 167 + 13); }

float f16_value(uint16_t code) {
  const int exponent = code >> 10 & 31, fraction = code & 1023;
  const float magnitude = exponent == 31 ? (fraction == 0 ? INFINITY : NAN)
                          : exponent == 0
                              ? std::ldexp(static_cast<float>(fraction), -24)
                              : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  return code >> 15 != 0 ? -magnitude : magnitude;
}

}  // namespace

std::span<const CaseSpec> verify_cases() { return kCases; }

VerifyCase::VerifyCase(const CaseSpec& spec)
    : problem_(GemmProblem::parse(spec.problem).value()), groups_(group_layout(problem_)) {
  const bool by_k = problem_.grouping == OCTET_K_GROUPED;
  if (problem_.grouping == OCTET_BATCHED || problem_.grouping == OCTET_MASKED) {
    matrices_ = problem_.groups;
  }
  b_matrices_ = by_k ? 1 : problem_.groups;
  d_matrices_ = by_k ? problem_.groups : matrices_;
  lay_out(spec);
  const GemmProblem& p = problem_;
  const auto seed = static_cast<uint64_t>(p.m * 1000003 + p.n * 1009 + p.k);
  fill_operand(kA, kSfa, 4 * seed + 1, spec.any_code);
  fill_operand(kB, kSfb, 4 * seed + 2, spec.any_code);
  if (p.bias_type != OCTET_NONE) {
    fill_values(buffers_[kBias].data(), p.groups * shape_.bias_group_stride, p.bias_type, seed);
  }
  if (!p.accumulate) return;
  const Buffer c = spec.in_place ? kD : kC;
  const int64_t element = size_of(p.d_type);
  for (int64_t g = 0; g < d_matrices_; ++g) {
    for (int64_t row = 0; row < groups_.rows; ++row) {
      const int64_t at = offset_[c] + (g * shape_.c.group_stride + row * shape_.c.ld) * element;
      fill_values(buffers_[c].data() + at, p.n, p.d_type,
                  4 * seed + 3 + static_cast<uint64_t>(row));
    }
  }
}

void VerifyCase::lay_out(const CaseSpec& spec) {
  const GemmProblem& p = problem_;
  const int64_t g = b_matrices_, cols = groups_.cols, blocks = k_blocks(cols);
  const int64_t b_rows = scale_rows(p.n);
  // Packed groups are as wide as their K, one behind the other.
  const int64_t element = size_of(p.d_type),
                k_ld = p.packed ? cols : round_up(cols, 16) + 16 * spec.pad;
  const int64_t m = groups_.rows;
  shape_.a = matrix(nullptr, m, cols, k_ld, m * k_ld + 16 * spec.pad);
  shape_.b = matrix(nullptr, p.n, cols, k_ld, p.n * k_ld);
  const int64_t d_ld = p.n + spec.d_pad;
  shape_.d = matrix(nullptr, m, p.n, d_ld, m * d_ld + 3 * spec.d_pad);
  if (p.accumulate) shape_.c = shape_.d;
  shape_.bias_group_stride = p.n + 1;

  const auto scales = [&](int64_t rows, octet_scale_layout layout) {
    octet_scale_matrix s{};
    if (layout == OCTET_ROW_MAJOR) {
      s = row_major_scales(nullptr, blocks + spec.scale_pad);
    } else if (layout == OCTET_COLUMN_MAJOR_ODD) {
      s = column_major_scales(nullptr, rows + spec.scale_pad);
    } else {
      s = column_major_scales(nullptr, round_up(rows, 4) + 4 * spec.scale_pad);
    }
    s.group_stride = round_up(rows * s.row_stride + blocks * s.k_stride, 4);
    return s;
  };
  shape_.sfa = scales(m, p.sfa_layout);
  shape_.sfb = scales(b_rows, p.sfb_layout);

  // Room for what is read in any case, padding full of NaNs.
  buffers_[kMetadata] = groups_.metadata;
  buffers_[kA].assign(static_cast<std::size_t>(matrices_ * shape_.a.group_stride + 16), kNanCode);
  buffers_[kB].assign(static_cast<std::size_t>(g * shape_.b.group_stride + 16), kNanCode);
  offset_[kSfa] = p.sfa_layout == OCTET_COLUMN_MAJOR ? 0 : 4;
  offset_[kSfb] = p.sfb_layout == OCTET_COLUMN_MAJOR ? 0 : 4;
  buffers_[kSfa].assign(static_cast<std::size_t>(matrices_ * shape_.sfa.group_stride * 4 + 16),
                        kNanByte);
  buffers_[kSfb].assign(static_cast<std::size_t>(g * shape_.sfb.group_stride * 4 + 16), kNanByte);
  if (p.bias_type != OCTET_NONE) {
    buffers_[kBias].resize(
        static_cast<std::size_t>(p.groups * shape_.bias_group_stride * size_of(p.bias_type)));
  }
  const auto d_bytes =
      static_cast<std::size_t>((d_matrices_ * shape_.d.group_stride + spec.d_shift) * element);
  offset_[kD] = kGuard + spec.d_shift * element;
  buffers_[kD].resize(d_bytes + 2 * kGuard);
  for (std::size_t i = 0; i < buffers_[kD].size(); ++i) {
    buffers_[kD][i] = guard_byte(static_cast<int64_t>(i));
  }
  if (p.accumulate && !spec.in_place) buffers_[kC].assign(d_bytes, kNanByte);
}

GemmArgs VerifyCase::args(const Addresses& base) const {
  const auto at = [&](Buffer which) -> void* {
    return base[which] == nullptr ? nullptr : static_cast<char*>(base[which]) + offset_[which];
  };
  GemmArgs args = shape_;
  args.a.data = at(kA);
  args.b.data = at(kB);
  args.d.data = at(kD);
  args.sfa.data = static_cast<const float*>(at(kSfa));
  args.sfb.data = static_cast<const float*>(at(kSfb));
  args.bias = at(kBias);
  switch (problem_.grouping) {
    case OCTET_CONTIGUOUS: args.group_index = at(kMetadata); break;
    case OCTET_OFFSETS: args.group_offsets = at(kMetadata); break;
    case OCTET_ALIGNED: args.group_ends = at(kMetadata); break;
    case OCTET_MASKED: args.group_counts = at(kMetadata); break;
    case OCTET_K_GROUPED:
      if (!problem_.packed) args.group_offsets = at(kMetadata);
      args.group_counts = static_cast<char*>(at(kMetadata)) + groups_.counts_at;
      break;
    default: break;
  }
  if (problem_.accumulate) args.c.data = buffers_[kC].empty() ? args.d.data : at(kC);
  return args;
}

void VerifyCase::fill_operand(Buffer codes, Buffer scales, uint64_t seed, bool any_code) {
  const GemmProblem& p = problem_;
  const int64_t cols = groups_.cols;
  if (cols == 0) return;
  const octet_matrix& shape = codes == kA ? shape_.a : shape_.b;
  const octet_scale_matrix& strides = codes == kA ? shape_.sfa : shape_.sfb;
  const int64_t rows = shape.rows, lines = codes == kA ? rows : scale_rows(rows);
  Random random(seed);
  const int64_t matrices = codes == kA ? matrices_ : b_matrices_;
  for (int64_t g = 0; g < matrices; ++g) {
    uint8_t* const code = buffers_[codes].data() + g * shape.group_stride;
    auto* const scale = reinterpret_cast<float*>(buffers_[scales].data() + offset_[scales]) +
                        g * strides.group_stride;
    if (any_code) {
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t k = 0; k < cols; ++k) {
          uint8_t& c = code[r * shape.ld + k];
          c = static_cast<uint8_t>(random.bits());
          if ((c & kNanCode) == kNanCode) c = static_cast<uint8_t>(c - 1);  // +-448
        }
        if (r % 37 == 5) code[r * shape.ld + r % cols] = kNanCode;
      }
      for (int64_t r = 0; r < lines; ++r) {
        for (int64_t kb = 0; kb < k_blocks(cols); ++kb) {
          const auto exponent = static_cast<int>(random.bits() % 81) - 40;
          const float s = std::ldexp(1 + std::fabs(random.bell()), exponent);
          scale[r * strides.row_stride + kb * strides.k_stride] = r % 11 == 7 && kb == 1 ? 0.0f : s;
        }
      }
      continue;
    }
    // Rows of different size, so that scales matter.
    std::vector<float> x(static_cast<std::size_t>(rows * cols));
    for (int64_t r = 0; r < rows; ++r) {
      const float size = std::ldexp(1.0f, static_cast<int>(r * 5 % 9) - 4);
      for (int64_t k = 0; k < cols; ++k)
        x[static_cast<std::size_t>(r * cols + k)] = size * random.bell();
    }
    QuantizeArgs q;
    q.block = codes == kA || p.granularity == OCTET_1D1D ? OCTET_BLOCK_1X128 : OCTET_BLOCK_128X128;
    q.x = matrix(x.data(), rows, cols);
    q.codes = matrix(code, rows, cols, shape.ld);
    q.scales = scale;
    q.row_stride = strides.row_stride;
    q.k_stride = strides.k_stride;
    cpu::quantize(q).value();
  }
  if (p.grouping == OCTET_K_GROUPED && !p.packed) clear_tails(buffers_[codes].data(), shape);
}

// Zero codes between each group's K and the next multiple of 128, as the interface asks.
void VerifyCase::clear_tails(uint8_t* codes, const octet_matrix& shape) const {
  int64_t start = 0;
  for (const int64_t size : group_sizes(problem_)) {
    const int64_t next = start + round_up(size, 128);
    for (int64_t r = 0; r < shape.rows; ++r) {
      std::fill(codes + r * shape.ld + start + size, codes + r * shape.ld + next, uint8_t{0});
    }
    start = next;
  }
}

// Finite values of all sizes.
void VerifyCase::fill_values(uint8_t* to, int64_t count, octet_type type, uint64_t seed) const {
  Random random(seed * 0x2545f4914f6cdd1du);
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits =
        std::bit_cast<uint32_t>(std::ldexp(random.bell(), static_cast<int>(i % 7)));
    if (type == OCTET_F32) {
      std::memcpy(to + 4 * i, &bits, 4);
    } else {
      // BF16 is FP32 cut off; FP16: sign, 5 bits of exponent below the largest, 10 of fraction.
      const auto half = static_cast<uint16_t>(
          type == OCTET_BF16 ? bits >> 16 : (bits >> 16 & 0x8000) | (random.bits() % 0x5000));
      std::memcpy(to + 2 * i, &half, 2);
    }
  }
}

VerifyCase::Bytes VerifyCase::run_on_cpu(int32_t split) const {
  GemmPlan plan = plan_gemm(problem_, DeviceSpec::preset("cpu").value()).value();
  plan.split = split;
  Bytes d = buffers_[kD];
  Addresses base{};
  for (int i = 0; i < kBuffers; ++i) {
    // The arguments of a call do not tell what is read from what is written; only D is written.
    base[static_cast<std::size_t>(i)] =
        const_cast<uint8_t*>(buffers_[static_cast<std::size_t>(i)].data());
  }
  base[kD] = d.data();
  cpu::run(plan, args(base)).value();
  return d;
}

std::string VerifyCase::value_text(const uint8_t* at) const {
  if (problem_.d_type == OCTET_F32) {
    uint32_t bits = 0;
    std::memcpy(&bits, at, 4);
    return fmt::format("{:#010x} ({:.9g})", bits, std::bit_cast<float>(bits));
  }
  uint16_t bits = 0;
  std::memcpy(&bits, at, 2);
  const float value =
      problem_.d_type == OCTET_F16 ? f16_value(bits) : std::bit_cast<float>(uint32_t{bits} << 16);
  return fmt::format("{:#06x} ({:.5g})", bits, value);
}

std::optional<Difference> VerifyCase::compare(const Bytes& got, const Bytes& want) const {
  if (got == want) return {};
  const GemmProblem& p = problem_;
  const int64_t element = size_of(p.d_type), size = static_cast<int64_t>(want.size());
  const octet_matrix& d = shape_.d;
  // Which output a byte belongs to, in elements from the start of D; -1: to none.
  const auto output_at = [&](int64_t byte) -> int64_t {
    if (byte < offset_[kD]) return -1;
    const int64_t at = (byte - offset_[kD]) / element, in_group = at % d.group_stride;
    const bool inside =
        at / d.group_stride < d_matrices_ && in_group / d.ld < d.rows && in_group % d.ld < p.n;
    return inside ? at : -1;
  };
  Difference found;
  bool first = true;
  for (int64_t i = 0; i < size; ++i) {
    if (got[static_cast<std::size_t>(i)] == want[static_cast<std::size_t>(i)]) continue;
    const int64_t at = output_at(i);
    const int64_t start = offset_[kD] + at * element;
    if (first && at >= 0) {
      found.inside = true;
      found.group = at / d.group_stride;
      found.row = at % d.group_stride / d.ld;
      found.col = at % d.group_stride % d.ld;
      found.got = value_text(got.data() + start);
      found.want = value_text(want.data() + start);
    } else if (first) {
      const int64_t end =
          offset_[kD] + ((d_matrices_ - 1) * d.group_stride + (d.rows - 1) * d.ld + p.n) * element;
      found.got = fmt::format("{:#04x}", got[static_cast<std::size_t>(i)]);
      found.want = fmt::format("{:#04x}", want[static_cast<std::size_t>(i)]);
      found.place = i < offset_[kD] ? fmt::format("{} bytes before D", offset_[kD] - i)
                    : i >= end      ? fmt::format("{} bytes after D", i - end + 1)
                               : fmt::format("byte {} of D, between its rows", i - offset_[kD]);
    }
    first = false;
    if (at < 0) {
      ++found.strays;
    } else {
      ++found.outputs;
      i = start + element - 1;  // an output counts once
    }
  }
  return found;
}

}  // namespace octet::tool
