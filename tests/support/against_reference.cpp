// See against_reference.h.
#include "support/against_reference.h"

#include <cstring>

#include "core/check.h"
#include "core/float_types.h"
#include "core/views.h"
#include "cpu/run.h"
#include "ref/gemm.h"
#include "support/compare.h"

namespace oct::testing_support {
namespace {

constexpr int64_t kQuick = 20'000'000;  // multiply-adds
constexpr int64_t kSamples = 400;       // elements of each piece

const char* moved(const void* data, octet_type type, int64_t elements) {
  return data == nullptr ? nullptr
                         : static_cast<const char*>(data) + elements * core::size_of(type);
}

// One element of a piece as a piece of its own, written to `out`.
core::DenseView element(const core::DenseView& v, int64_t m, int64_t n, void* out) {
  core::DenseView e = v;
  e.m = e.n = 1;
  e.a = moved(v.a, v.in_type, m * v.a_ld);
  e.b = moved(v.b, v.in_type, n * v.b_ld);
  if (v.sfa.data != nullptr) e.sfa.data += m * v.sfa.row_stride;
  if (v.sfb.data != nullptr) e.sfb.data += n / v.sfb_rows * v.sfb.row_stride;
  e.c = moved(v.c, v.d_type, m * v.c_ld + n);
  e.bias = moved(v.bias, v.bias_type, n);
  e.d = out;
  return e;
}

}  // namespace

std::string run_and_compare(HostCase& c, octet_isa isa, int threads) {
  const HostCase before = c;
  const octet_gemm_plan plan = cpu_plan(c.problem);
  const octet_gemm_args args = c.args();
  if (Status s = core::check_args(plan, args); !s.ok()) return c.name() + ": " + s.message();
  const core::Work work = core::expand(plan, args);
  if (Status s = cpu::run(work, {threads, isa}, nullptr); !s.ok()) {
    return c.name() + ": " + s.message();
  }
  int64_t size = 0;
  for (const core::DenseView& v : work.gemms) size += v.m * v.n * v.k;
  if (size <= kQuick) {
    HostCase want = before;
    ref::run(core::expand(plan, want.args()));
    if (std::string wrong = compare_results(c, want); !wrong.empty()) return wrong;
    return check_untouched(before, c);
  }
  const core::Work inputs = core::expand(plan, before.args());
  Random random(c.problem.seed + 1u);
  for (std::size_t i = 0; i < work.gemms.size(); ++i) {
    const core::DenseView& v = work.gemms[i];
    for (int64_t sample = 0; sample < kSamples; ++sample) {
      // The four corners, then the last row and column, then anywhere.
      const int64_t m = sample & 1 || sample < 40 ? v.m - 1 : random.between(0, v.m - 1);
      const int64_t n = sample & 2 || sample < 4 ? v.n - 1 : random.between(0, v.n - 1);
      const int64_t row = sample == 0 ? 0 : m, col = sample == 1 ? 0 : n;
      uint32_t want = 0;
      ref::gemm(element(inputs.gemms[i], row, col, &want));
      uint32_t got = 0;
      const int bytes = v.d_type == OCTET_F32 ? 4 : 2;
      std::memcpy(&got, moved(v.d, v.d_type, row * v.d_ld + col), static_cast<std::size_t>(bytes));
      if (got != want) {
        return c.name() + ": piece " + std::to_string(i) + ", element [" + std::to_string(row) +
               ", " + std::to_string(col) + "]: bits " + std::to_string(got) + ", wanted " +
               std::to_string(want);
      }
    }
  }
  return check_untouched(before, c);
}

}  // namespace oct::testing_support
