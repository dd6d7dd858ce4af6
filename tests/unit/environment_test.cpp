// The caller's floating-point environment: a call neither traps, whatever exceptions are unmasked
// and whatever stands in its arguments, nor leaves the environment changed.
#include <cfenv>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "octet/octet.hpp"

namespace {

using namespace octet;

constexpr std::uint32_t kSignalling = 0x7fa00000u;

// Written as bits: a conversion would quieten it.
void signal(float& x) { std::memcpy(&x, &kSignalling, sizeof x); }
void signal(double& x) {
  const std::uint64_t bits = 0x7ff4000000000000u;
  std::memcpy(&x, &bits, sizeof x);
}

struct Small {
  Small() {
    problem = GemmProblem::parse("dense_m4n128k128_f32").value();
    plan = plan_gemm(problem, DeviceSpec::preset("cpu").value()).value();
    args.a = matrix(a, 4, 128);
    args.b = matrix(b, 128, 128);
    args.d = matrix(d, 4, 128);
    args.sfa = column_major_scales(sfa, 4);
    args.sfb = row_major_scales(sfb, 1);
    quantise.x = matrix(x, 4, 128);
    quantise.codes = matrix(a, 4, 128);
    quantise.scales = sfa;
    quantise.row_stride = 1;
    quantise.k_stride = 4;
  }
  alignas(16) std::uint8_t a[4 * 128]{}, b[128 * 128]{};
  alignas(16) float sfa[4]{}, sfb[1]{};
  float d[4 * 128]{}, x[4 * 128]{};
  GemmProblem problem;
  GemmPlan plan;
  GemmArgs args;
  QuantizeArgs quantise;
};

// Every call that meets a floating-point number, with signalling NaN where one can stand.
std::vector<std::function<octet_code(Small&)>> calls() {
  return {
      [](Small& s) {
        signal(s.sfa[2]);
        return octet_validate(&s.plan, &s.args);
      },
      [](Small& s) {
        signal(s.sfa[2]);
        signal(s.sfb[0]);
        return octet_cpu_run(&s.plan, &s.args, nullptr, nullptr);
      },
      [](Small& s) {
        signal(s.sfa[2]);
        return octet_ref_run(&s.plan, &s.args);
      },
      [](Small& s) {
        signal(s.quantise.amax_min);
        return octet_cpu_quantize(&s.quantise);
      },
      [](Small& s) {
        signal(s.x[7]);
        return octet_cpu_quantize(&s.quantise);
      },
      [](Small& s) {
        signal(s.x[7]);
        return octet_ref_quantize(&s.quantise);
      },
      [](Small& s) {
        signal(s.sfa[1]);
        return octet_cpu_dequantize(&s.quantise);
      },
      [](Small& s) {
        signal(s.sfa[1]);
        return octet_ref_dequantize(&s.quantise);
      },
      [](Small& s) {
        return octet_gemm_plan_parse(
            "dense_m4n128k128 @ cpu: kernel=cpu split=1 sms=0 workspace=0 us=nan", &s.plan);
      },
      [](Small& s) {
        return octet_gemm_plan_parse(
            "dense_m4n128k128 @ cpu: kernel=cpu split=1 sms=0 workspace=0 us=1e-320", &s.plan);
      },
      [](Small& s) {
        signal(s.plan.predicted_us);
        char text[2 * OCTET_TEXT_CAPACITY];
        return octet_gemm_plan_print(&s.plan, text, sizeof text);
      },
      [](Small& s) {
        signal(s.plan.predicted_us);
        return octet_code{octet_gemm_plan_equal(&s.plan, &s.plan)};
      },
      [](Small& s) {
        octet_device_spec device;
        if (octet_device_preset("h200", &device) != OCTET_OK) return octet_code{-1};
        signal(device.launch_seconds);
        return octet_plan_gemm(&s.problem, &device, &s.plan);
      },
      [](Small& s) {
        octet_device_spec device;
        if (octet_device_preset("h200", &device) != OCTET_OK) return octet_code{-1};
        return octet_plan_gemm(&s.problem, &device, &s.plan);
      },
      [](Small& s) {
        octet_device_spec device;
        if (octet_device_preset("h200", &device) != OCTET_OK) return octet_code{-1};
        size_t needed = 0;
        return octet_plan_explain(&s.problem, &device, nullptr, 0, &needed);
      },
  };
}

// The same code with every exception unmasked as without; a trap would end the program.
TEST(Environment, NothingTraps) {
  std::fenv_t saved;
  std::fegetenv(&saved);
  int number = 0;
  for (const auto& call : calls()) {
    Small quiet, trapping;
    const octet_code want = call(quiet);
    std::feclearexcept(FE_ALL_EXCEPT);
    feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INEXACT);
    const int before = fegetexcept();  // 0 on processors that cannot trap
    const octet_code got = call(trapping);
    const int after = fegetexcept();
    std::fesetenv(&saved);
    EXPECT_EQ(got, want) << "call " << number;
    EXPECT_EQ(after, before) << "call " << number;
    ++number;
  }
}

}  // namespace
