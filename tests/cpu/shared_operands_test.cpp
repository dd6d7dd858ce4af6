// Strides of 0: one scale for everything, in every layout and grouping, and one operand for a whole
// batch. Held against the same numbers written out.
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/extents.h"
#include "core/float_types.h"
#include "core/problem.h"
#include "octet/octet.h"
#include "support/compare.h"
#include "support/host_case.h"
#include "support/problems.h"

namespace {

using namespace oct::testing_support;

octet_code run(bool reference, const HostCase& c, const octet_gemm_args& args) {
  const octet_gemm_plan plan = cpu_plan(c.problem);
  return reference ? octet_ref_run(&plan, &args) : octet_cpu_run(&plan, &args, nullptr, nullptr);
}

void fill_scales(const Buffer& buffer, float value) {
  for (int64_t i = 0; i < buffer.size() / 4; ++i) buffer.as<float>()[i] = value;
}

// A pointer aligned to 4 bytes and no more.
alignas(16) const float kScales[4] = {0, 0.375f, 0, 1.75f};

TEST(SharedOperands, OneScaleForEverything) {
  Random random(31);
  int several = 0;
  for (int i = 0; i < 400; ++i) {
    octet_gemm_problem p = draw_problem(random, static_cast<Regime>(i % kRegimes), 20000);
    if (p.granularity == OCTET_SCALE_NONE) continue;
    p.sfa_layout = static_cast<octet_scale_layout>(i % 3);
    p.sfb_layout = static_cast<octet_scale_layout>(i / 3 % 3);
    const HostCase before(p);
    fill_scales(before.sfa, kScales[1]);
    fill_scales(before.sfb, kScales[3]);
    HostCase want = before;
    ASSERT_EQ(run(true, want, want.args()), OCTET_OK) << octet_status_message();
    for (const bool reference : {false, true}) {
      HostCase got = before;
      octet_gemm_args args = got.args();
      if (args.sfa.data != nullptr) args.sfa = {&kScales[1], 0, 0, 0};
      if (args.sfb.data != nullptr) args.sfb = {&kScales[3], 0, 0, 0};
      const octet_gemm_plan plan = cpu_plan(p);
      ASSERT_EQ(octet_validate(&plan, &args), OCTET_OK)
          << got.name() << ": " << octet_status_message();
      ASSERT_EQ(run(reference, got, args), OCTET_OK) << octet_status_message();
      ASSERT_EQ(compare_results(got, want), "");
    }
    const auto e = oct::core::scale_extent_a(p, before.shape);
    if (e.rows > 1 && e.blocks > 1) ++several;
  }
  EXPECT_GT(several, 30);
}

// One group's matrix written over all of them.
void repeat(const Buffer& buffer, int64_t bytes_of_one, int64_t group_stride_bytes,
            int64_t groups) {
  for (int64_t g = 1; g < groups; ++g) {
    std::memcpy(buffer.data() + g * group_stride_bytes, buffer.data(),
                static_cast<std::size_t>(bytes_of_one));
  }
}

TEST(SharedOperands, ABatchMayShareWhatItReads) {
  Random random(32);
  int shared[5] = {};
  for (int i = 0; i < 800; ++i) {
    const octet_gemm_problem p = draw_problem(random, static_cast<Regime>(i % kRegimes), 20000);
    if (p.grouping != OCTET_BATCHED || p.groups < 2) continue;
    const HostCase before(p);
    octet_gemm_args args = before.args();
    const struct {
      octet_matrix& x;
      octet_type type;
      const Buffer& buffer;
    } matrices[] = {{args.a, p.in_type, before.a},
                    {args.b, p.in_type, before.b},
                    {args.c, p.d_type, before.c}};
    for (int j = 0; j < 3; ++j) {
      const auto& m = matrices[j];
      if (m.buffer.size() == 0 || random.chance(0.4)) continue;
      repeat(m.buffer, oct::core::matrix_bytes(m.x, m.type, 1),
             m.x.group_stride * oct::core::size_of(m.type), p.groups);
      m.x.group_stride = 0;
      ++shared[j];
    }
    const struct {
      octet_scale_matrix& x;
      oct::core::ScaleExtent e;
      const Buffer& buffer;
    } scales[] = {{args.sfa, oct::core::scale_extent_a(p, args), before.sfa},
                  {args.sfb, oct::core::scale_extent_b(p, args), before.sfb}};
    for (int j = 0; j < 2; ++j) {
      const auto& m = scales[j];
      if (m.buffer.size() == 0 || random.chance(0.4)) continue;
      repeat(m.buffer, oct::core::scale_bytes(m.x, {m.e.rows, m.e.blocks, 1}), m.x.group_stride * 4,
             p.groups);
      m.x.group_stride = 0;
      ++shared[3 + j];
    }
    HostCase want = before;
    ASSERT_EQ(run(true, want, want.args()), OCTET_OK) << octet_status_message();
    for (const bool reference : {false, true}) {
      HostCase got = before;
      args.d.data = got.args().d.data;
      const octet_gemm_plan plan = cpu_plan(p);
      ASSERT_EQ(octet_validate(&plan, &args), OCTET_OK)
          << got.name() << ": " << octet_status_message();
      ASSERT_EQ(run(reference, got, args), OCTET_OK) << got.name() << octet_status_message();
      ASSERT_EQ(compare_results(got, want), "");
    }
  }
  for (const int count : shared) EXPECT_GT(count, 10);
}

// Dequantising only reads scales: any strides, one scale for everything too.
TEST(SharedOperands, DequantiseTakesStridesOfZero) {
  constexpr int64_t kRows = 130, kCols = 300;
  std::vector<uint8_t> codes(kRows * kCols);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i * 7 % 120);
  const struct { int64_t row, k; } strides[] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};
  for (const int32_t block : {OCTET_BLOCK_1X128, OCTET_BLOCK_128X128}) {
    for (const auto& stride : strides) {
      float scales[kRows + 3];
      for (int i = 0; i < kRows + 3; ++i) scales[i] = 0.25f + static_cast<float>(i % 16);
      std::vector<float> x(kRows * kCols, -1.0f);
      octet_quantize_args q;
      octet_quantize_args_init(&q);
      q.block = block;
      q.x = {x.data(), kRows, kCols, kCols, 0};
      q.codes = {codes.data(), kRows, kCols, kCols, 0};
      q.scales = scales;
      q.row_stride = stride.row;
      q.k_stride = stride.k;
      for (const auto function : {octet_cpu_dequantize, octet_ref_dequantize}) {
        ASSERT_EQ(function(&q), OCTET_OK) << octet_status_message();
        for (int64_t r = 0; r < kRows; ++r) {
          for (int64_t c = 0; c < kCols; ++c) {
            const int64_t line = block == OCTET_BLOCK_1X128 ? r : r / 128;
            const float want =
                oct::core::e4m3_to_f32(codes[static_cast<std::size_t>(r * kCols + c)]) *
                scales[line * stride.row + c / 128 * stride.k];
            ASSERT_EQ(x[static_cast<std::size_t>(r * kCols + c)], want) << r << " " << c;
          }
        }
      }
    }
  }
}

}  // namespace
