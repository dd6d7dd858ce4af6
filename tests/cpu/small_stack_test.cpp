// Every call fits a small stack: interpreters, coroutines and languages of small threads give no
// more. A fault here is a signal, so the work runs in a child process.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "octet/octet.hpp"
#include "support/host_case.h"
#include "support/sanitized.h"

namespace {

using namespace octet;
using namespace oct::testing_support;

constexpr std::size_t kStackBytes = 32 << 10;

void* call(void* work) {
  (*static_cast<std::function<void()>*>(work))();
  return nullptr;
}

// True if `work` ends in a thread with a stack of kStackBytes.
bool fits(std::function<void()> work) {
  const pid_t child = fork();
  if (child == 0) {
    pthread_attr_t attributes;
    pthread_t thread;
    if (pthread_attr_init(&attributes) != 0 ||
        pthread_attr_setstacksize(&attributes, kStackBytes) != 0 ||
        pthread_create(&thread, &attributes, call, &work) != 0 ||
        pthread_join(thread, nullptr) != 0) {
      _exit(3);
    }
    _exit(0);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

TEST(SmallStack, Gemm) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need room of their own";
  for (const char* text : {"dense_m130n200k300_f32_bias", "dense_m130n200k300_1d1d_split2",
                           "dense_m130n200k300_bf16in_acc", "offsets_g3m40n70k130_bf16in",
                           "contiguous_g2m64n70k256_f16", "kgrouped_g2m64n70k256"}) {
    const HostCase c(GemmProblem::parse(text).value());
    const octet_gemm_plan plan = cpu_plan(c.problem);
    const octet_gemm_args args = c.args();
    for (octet_isa isa = OCTET_ISA_PORTABLE; isa <= OCTET_ISA_AVX512; ++isa) {
      if (!octet_isa_available(isa)) continue;
      octet_cpu_options options;
      octet_cpu_options_init(&options);
      options.isa = isa;
      options.threads = 1;
      EXPECT_TRUE(fits([&] {
        if (octet_cpu_run(&plan, &args, &options, nullptr) != OCTET_OK) _exit(4);
      })) << text
          << " " << octet_isa_name(isa);
    }
    EXPECT_TRUE(fits([&] {
      if (octet_ref_run(&plan, &args) != OCTET_OK || octet_validate(&plan, &args) != OCTET_OK) {
        _exit(4);
      }
    })) << text;
  }
}

TEST(SmallStack, Quantise) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need room of their own";
  std::vector<float> x(200 * 300, 1.5f), scales(200 * 3);
  std::vector<std::uint8_t> codes(200 * 300);
  for (const std::int32_t block : {OCTET_BLOCK_1X128, OCTET_BLOCK_128X128}) {
    QuantizeArgs q;
    q.x = matrix(x.data(), 200, 300);
    q.codes = matrix(codes.data(), 300, 200);
    q.transpose = 1;
    q.block = block;
    q.scales = scales.data();
    q.row_stride = 1;
    q.k_stride = 200;
    q.threads = 1;
    for (const auto function :
         {octet_cpu_quantize, octet_cpu_dequantize, octet_ref_quantize, octet_ref_dequantize}) {
      EXPECT_TRUE(fits([&] {
        if (function(&q) != OCTET_OK) _exit(4);
      }));
    }
  }
}

TEST(SmallStack, Plan) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need room of their own";
  for (const char* device : {"cpu", "h200"}) {
    EXPECT_TRUE(fits([&] {
      octet_gemm_problem problem;
      octet_device_spec spec;
      octet_gemm_plan plan;
      char text[1024];
      std::size_t needed = 0;
      if (octet_gemm_problem_parse("dense_m64n7168k2048", &problem) != OCTET_OK ||
          octet_device_preset(device, &spec) != OCTET_OK ||
          octet_plan_gemm(&problem, &spec, &plan) != OCTET_OK ||
          octet_gemm_plan_print(&plan, text, sizeof text) != OCTET_OK ||
          octet_gemm_plan_parse(text, &plan) != OCTET_OK ||
          octet_plan_explain(&problem, &spec, text, sizeof text, &needed) != OCTET_OK ||
          octet_gemm_problem_parse("nonsense", &problem) != OCTET_INVALID_ARGUMENT) {
        _exit(4);
      }
    })) << device;
  }
}

}  // namespace
