// Memory that runs out at every allocation of the calling thread in turn: a call that uses threads
// refuses with a sentence or does its work, and never ends the process (the allocation inside
// std::thread once did).
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "octet/octet.h"
#include "small_gemm.h"
#include "square_quantize.h"

extern "C" void* __libc_malloc(std::size_t bytes);

namespace {
thread_local bool counting = false;
int left = 0;
}  // namespace

extern "C" void* malloc(std::size_t bytes) {
  if (counting && left-- == 0) return nullptr;
  return __libc_malloc(bytes);
}

namespace {

constexpr int kMostAllocations = 400;
constexpr int kThreads = 6;

// Calls until a run survives because nothing was left to fail. Returns how often it was refused.
template <typename Call>
int exhaust(const char* what, Call call) {
  int refused = 0;
  for (int n = 0; n < kMostAllocations; ++n) {
    left = n;
    counting = true;
    const octet_code code = call();
    counting = false;
    if (code == OCTET_OUT_OF_MEMORY) {
      ++refused;
    } else if (code != OCTET_OK) {
      std::printf("FAILED: %s, allocation %d: code %d\n", what, n, code);
      return -1;
    }
    if (left >= 0) return refused;
  }
  std::printf("FAILED: %s never ran out of allocations to fail\n", what);
  return -1;
}

int quantize() {
  static octet_abi::SquareQuantize<512> square;
  const octet_quantize_args args = square.args(kThreads);
  return exhaust("quantize", [&] { return octet_cpu_quantize(&args); });
}

int multiply() {
  static octet_abi::SmallGemm gemm(2.0f);
  octet_gemm_problem problem;
  octet_device_spec device;
  octet_gemm_plan plan;
  octet_gemm_args args;
  octet_cpu_options options;
  octet_gemm_args_init(&args);
  gemm.fill(args);
  octet_cpu_options_init(&options);
  options.threads = kThreads;
  if (octet_gemm_problem_parse(octet_abi::SmallGemm::text(), &problem) != OCTET_OK ||
      octet_device_preset("cpu", &device) != OCTET_OK ||
      octet_plan_gemm(&problem, &device, &plan) != OCTET_OK) {
    std::printf("FAILED: %s\n", octet_status_message());
    return -1;
  }
  const int refused =
      exhaust("run", [&] { return octet_cpu_run(&plan, &args, &options, nullptr); });
  if (!gemm.right()) {
    std::printf("FAILED: the product after the last run\n");
    return -1;
  }
  return refused;
}

}  // namespace

int main() {
  const int quantized = quantize(), multiplied = multiply();
  std::printf("refused for want of memory: quantize %d times, run %d times\n", quantized,
              multiplied);
  return quantized > 0 && multiplied > 0 ? 0 : 1;
}
