// All functions may be called from any thread: eight threads parse, plan, quantise and multiply at
// once, and each fails in its own way between its calls and must find its own sentence, never
// another's.
#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "octet/octet.h"
#include "small_gemm.h"

namespace {

constexpr int kThreads = 8;
constexpr int kRounds = 40;

std::atomic<int> failures{0};

void expect(bool right, int thread, const char* what) {
  if (right) return;
  std::printf("FAILED in thread %d: %s; its last message is \"%s\"\n", thread, what,
              octet_status_message());
  ++failures;
}

// The sentence of a failure that only this thread makes.
std::string fail_my_way(int thread) {
  octet_device_spec device{};
  const std::string name = "device_of_thread_" + std::to_string(thread);
  expect(octet_device_preset(name.c_str(), &device) == OCTET_INVALID_ARGUMENT, thread,
         name.c_str());
  return octet_status_message();
}

void quantize(int thread) {
  float x[128];
  float scale = 0;
  uint8_t codes[128];
  for (auto& value : x) value = 448.0f * static_cast<float>(thread + 1);
  octet_quantize_args args;
  octet_quantize_args_init(&args);
  args.threads = 2;
  args.x = {x, 1, 128, 128, 0};
  args.codes = {codes, 1, 128, 128, 0};
  args.scales = &scale;
  args.row_stride = args.k_stride = 1;
  expect(octet_cpu_quantize(&args) == OCTET_OK, thread, "quantise");
  expect(scale == static_cast<float>(thread + 1) && codes[127] == 0x7e, thread, "its codes");
}

void multiply(int thread) {
  octet_gemm_problem problem;
  octet_device_spec device;
  octet_gemm_plan plan;
  octet_gemm_args args;
  octet_cpu_options options;
  octet_abi::SmallGemm gemm(static_cast<float>(thread + 1));
  expect(octet_gemm_problem_parse(gemm.text(), &problem) == OCTET_OK, thread, "parse");
  expect(octet_device_preset("cpu", &device) == OCTET_OK, thread, "preset");
  expect(octet_plan_gemm(&problem, &device, &plan) == OCTET_OK, thread, "plan");
  octet_gemm_args_init(&args);
  gemm.fill(args);
  octet_cpu_options_init(&options);
  options.threads = 1 + thread % 3;
  expect(octet_cpu_run(&plan, &args, &options, nullptr) == OCTET_OK, thread, "run");
  expect(gemm.right(), thread, "its product");
}

void work(int thread, std::atomic<int>& ready) {
  expect(octet_status_message()[0] == 0, thread, "no message before its first failure");
  ++ready;
  while (ready < kThreads) std::this_thread::yield();
  const std::string mine = fail_my_way(thread);
  const std::string name = "device_of_thread_" + std::to_string(thread) + "\"";
  expect(mine.find(name) != std::string::npos, thread, "its message names its device");
  for (int round = 0; round < kRounds; ++round) {
    quantize(thread);
    multiply(thread);
    expect(mine == octet_status_message(), thread, "success leaves its message as it was");
    expect(fail_my_way(thread) == mine, thread, "the same failure, the same sentence");
  }
}

}  // namespace

int main() {
  std::atomic<int> ready{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back(work, thread, std::ref(ready));
  }
  for (auto& thread : threads) thread.join();
  if (octet_status_message()[0] != 0) {
    std::printf("FAILED: the first thread never failed and has a message\n");
    ++failures;
  }
  return failures == 0 ? 0 : 1;
}
