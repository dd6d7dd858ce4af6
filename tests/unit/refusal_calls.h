// Calls through the public interface that pass, and one thing changed in each: what the rows of the
// refusal tests are written with.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "core/refusals.h"
#include "kernel_abi/tile_config.h"
#include "octet/octet.hpp"
#include "plan/candidates.h"

namespace octet_refusals {

using namespace octet;
using oct::core::Rule;

// Memory for the operands of the calls below: slots far from each other. Only slots of metadata and
// scales are ever read.
inline constexpr std::size_t kSlotBytes = 1 << 18;
alignas(4096) inline unsigned char arena[16][kSlotBytes];
enum Slot { kA, kB, kC, kD, kSfa, kSfb, kBias, kIndex, kOffsets, kEnds, kCounts, kWork, kX };

struct Call {
  GemmPlan plan;
  GemmArgs args;
};

template <typename T>
T* slot(Slot s) {
  return reinterpret_cast<T*>(arena[s]);
}

// A call that passes check(): 256 rows where groups share them, 512 of K where groups share it.
inline Call call(const std::string& text) {
  for (auto& bytes : arena) std::memset(bytes, 0, kSlotBytes);
  Call c;
  const GemmProblem p = GemmProblem::parse(text).value();
  c.plan = plan_gemm(p, DeviceSpec::preset("cpu").value()).value();
  std::int64_t rows = p.m, k = p.k;
  if (p.grouping == OCTET_CONTIGUOUS || p.grouping == OCTET_OFFSETS ||
      p.grouping == OCTET_ALIGNED) {
    rows = 256;
  } else if (p.grouping == OCTET_MASKED) {
    rows = p.max_m;
  } else if (p.grouping == OCTET_K_GROUPED) {
    k = 512;
  }
  const std::int64_t b_rows = p.n;
  c.args.a = matrix(arena[kA], rows, k, k, rows * k);
  c.args.b = matrix(arena[kB], b_rows, k, k, b_rows * k);
  c.args.d = matrix(arena[kD], rows, p.n, p.n, rows * p.n);
  c.args.c = matrix(arena[kC], rows, p.n, p.n, rows * p.n);
  const std::int64_t pitch = (rows + 3) / 4 * 4;
  c.args.sfa = column_major_scales(slot<float>(kSfa), pitch, pitch * k_blocks(k));
  if (p.granularity == OCTET_1D1D) {
    c.args.sfb = column_major_scales(slot<float>(kSfb), (p.n + 3) / 4 * 4);
  } else {
    c.args.sfb = row_major_scales(slot<float>(kSfb), k_blocks(k), 64);
  }
  c.args.bias = arena[kBias];
  c.args.group_index = arena[kIndex];
  c.args.group_offsets = arena[kOffsets];
  c.args.group_ends = arena[kEnds];
  c.args.group_counts = arena[kCounts];
  return c;
}

inline QuantizeArgs quantize_args() {  // x [64, 250] float, 1x128
  QuantizeArgs q;
  q.x = matrix(arena[kX], 64, 250);
  q.codes = matrix(arena[kA], 64, 250);
  q.scales = arena[kSfa];
  q.row_stride = 1;
  q.k_stride = 64;
  return q;
}

using Change = std::function<void(Call&)>;
// What a call said, through the public interface or of a kernel.
struct Said {
  octet_code given;
  std::string text;
  Said(const Status& s) : given(s.code()), text(s.message()) {}       // NOLINT: converts
  Said(const oct::Status& s) : given(s.code()), text(s.message()) {}  // NOLINT
  octet_code code() const { return given; }
  const std::string& message() const { return text; }
};
using Attempt = std::function<Said()>;

inline Attempt supported(const std::string& text, std::function<void(GemmProblem&)> change,
                         const char* device = "cpu") {
  return [=] {
    GemmProblem p = GemmProblem::parse(text).value();
    change(p);
    return supports(p, DeviceSpec::preset(device).value());
  };
}
inline Attempt checked(const std::string& text, Change change) {
  return [=] {
    Call c = call(text);
    change(c);
    return check(c.plan, c.args);
  };
}
inline Attempt validated(const std::string& text, Change change) {
  return [=] {
    Call c = call(text);
    change(c);
    return validate(c.plan, c.args);
  };
}
inline Attempt quantized(std::function<void(QuantizeArgs&)> change) {
  return [=] {
    QuantizeArgs q = quantize_args();
    change(q);
    return cpu::quantize(q);
  };
}
inline Attempt dequantized(std::function<void(QuantizeArgs&)> change) {
  return [=] {
    QuantizeArgs q = quantize_args();
    change(q);
    return cpu::dequantize(q);
  };
}
// Of one kernel, on an H200 after `change`.
inline Attempt served(
    const char* kernel, const std::string& text, int split,
    std::function<void(DeviceSpec&)> change = [](DeviceSpec&) {}) {
  return [=]() -> Said {
    DeviceSpec device = DeviceSpec::preset("h200").value();
    change(device);
    return oct::plan::serves(oct::abi::parse_kernel(kernel), GemmProblem::parse(text).value(),
                             device, split);
  };
}
inline Attempt parsed(const std::string& text) {
  return [=] { return GemmProblem::parse(text).status(); };
}

// A table of one choice, checked for a device.
inline Attempt table_checked(const std::string& kernel, int split, int ctas, const char* device) {
  return [=] {
    const std::string text = "octet tuned table 1\ndevice: h200\nsms: 132\n" +
                             std::string("dense_m64n256k512: kernel=") + kernel +
                             " split=" + std::to_string(split) + " ctas=" + std::to_string(ctas) +
                             " us=1\n";
    return TunedTable::parse(text).value().check(DeviceSpec::preset(device).value());
  };
}

inline std::string address(const void* pointer) {
  std::ostringstream out;
  out << pointer;
  return out.str();
}
inline std::string size(std::size_t n) { return std::to_string(n); }

inline constexpr const char* kDense = "dense_m64n256k512";
inline constexpr std::int64_t kHuge = std::int64_t{1} << 45;

struct Row {
  Rule rule;
  Attempt attempt;
  std::string sentence;
};

}  // namespace octet_refusals
