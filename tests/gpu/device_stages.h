// Stages that the tests of grouped problems and of weight gradients have in common: what each
// kernel must still compute with other plans, again and again, and when metadata changes.
#pragma once

#include <initializer_list>
#include <span>

#include "device_harness.h"
#include "plan/planner.h"

namespace oct::test {

using Texts = std::span<const char* const>;  // problem strings
// The kernels that a test forces on a problem with K cut into `split`.
using KernelsFor = Kernels (*)(const octet_gemm_problem& p, int split);

inline void run_and_compare_all(const Kernels& kernels, int split, const HostCase& c,
                                const DeviceOperands& device, const Bytes& want,
                                cudaStream_t stream, const char* what) {
  for (const char* kernel : kernels) {
    run_and_compare(plan_for(c.problem, kernel, split), c, device, want, stream, what);
  }
}

// --problem. Returns the exit code.
inline int one_problem(const std::string& text, KernelsFor kernels_for, Arena& arena,
                       cudaStream_t stream) {
  const HostCase c(parsed(text.c_str()));
  const Bytes want = processor_result(c, 1, 0);
  const DeviceOperands device(arena, c, stream);
  run_and_compare_all(kernels_for(c.problem, 1), 1, c, device, want, stream, "one");
  std::printf("%s: %lld failures\n", text.c_str(), static_cast<long long>(failures));
  return failures ? 1 : 0;
}

// The planner's choice by the one call, on random problems of `make_case`.
inline void planned(int count, uint64_t seed, double until,
                    GroupedCase (*make_case)(uint64_t seed, bool spoiled), Arena& arena,
                    cudaStream_t stream) {
  const auto plan_of = [](const HostCase& c, octet_gemm_plan& plan) {
    return plan::plan_gemm(c.problem, context->device_spec(), nullptr, plan);
  };
  const auto make = [&](uint64_t s) {
    GroupedCase c = make_case(s, false);
    octet_gemm_plan plan{};
    if (plan_of(c.host, plan).ok() && plan.split != 1) {
      c.want = processor_result(c.host, plan.split, 0);
    }
    return c;
  };
  random_cases(count, seed, until, "planned", make, [&](const GroupedCase& c) {
    const DeviceOperands device(arena, c.host, stream);
    octet_gemm_plan plan{};
    Status s = plan_of(c.host, plan);
    if (s.ok()) s = context->gemm(c.host.problem, device.args, stream);
    if (!s.ok()) {
      fail(plan, c.host, "gemm", s.message().c_str());
      return;
    }
    compare(plan, c.host, device, c.want, stream, "gemm");
  });
}

inline void splits(Texts texts, int least, int most, KernelsFor kernels_for, Arena& arena,
                   cudaStream_t stream) {
  for (const char* text : texts) {
    const HostCase c(parsed(text));
    const DeviceOperands device(arena, c, stream);
    ++problems;
    for (int split = least; split <= most; ++split) {
      const Kernels kernels = kernels_for(c.problem, split);
      if (kernels.empty()) continue;
      const Bytes want = processor_result(c, split, 0);
      run_and_compare_all(kernels, split, c, device, want, stream, "splits");
    }
  }
}

inline void sm_counts(Texts texts, KernelsFor kernels_for, Arena& arena, cudaStream_t stream) {
  for (const char* text : texts) {
    const HostCase c(parsed(text));
    const Bytes want = processor_result(c, 1, 0);
    const DeviceOperands device(arena, c, stream);
    ++problems;
    for (const char* kernel : kernels_for(c.problem, 1)) {
      octet_gemm_plan plan = plan_for(c.problem, kernel, 1);
      for (plan.sms = 1; plan.sms <= 132; plan.sms += plan.sms < 12 ? 1 : 5) {
        if (!run_and_compare(plan, c, device, want, stream, "SM counts")) break;
      }
    }
  }
  std::printf("SM counts: %lld failures\n", static_cast<long long>(failures));
}

struct Repeats {
  int count;
  int compared_every = 1;   // the last is always compared
  bool change_sms = false;  // from launch to launch
};

// Every kernel again and again, back to back; compared on the device.
inline void repeat(const Kernels& kernels, int split, const HostCase& c, const Bytes& want,
                   const Repeats& how, Arena& arena, cudaStream_t stream, const char* what) {
  const DeviceOperands device(arena, c, stream);
  void* reference = arena.take(c.d.size() + 256);
  auto* result = static_cast<unsigned long long*>(arena.take(256));
  OCT_CUDA(cudaMemcpyAsync(reference, want.data(), want.size(), cudaMemcpyHostToDevice, stream));
  for (const char* kernel : kernels) {
    octet_gemm_plan plan = plan_for(c.problem, kernel, split);
    device.reset_d();
    OCT_CUDA(cudaMemsetAsync(result, 0, 16, stream));
    for (int i = 1; i <= how.count; ++i) {
      if (how.change_sms) plan.sms = 1 + (i * 37 + 94) % 132;
      if (const Status s = context->run(plan, device.args, stream); !s.ok()) {
        fail(plan, c, what, s.message().c_str());
        break;
      }
      ++launches;
      if (i % how.compared_every == 0 || i == how.count) {
        // Whole words of 16 bits; an odd byte at the end is a guard's.
        compare_words(device.d(), reference, c.d.size() / 2 * 2, result, stream);
      }
    }
    unsigned long long got[2];
    OCT_CUDA(cudaMemcpyAsync(got, result, sizeof got, cudaMemcpyDeviceToHost, stream));
    wait(stream, plan, c, what);
    if (got[0] != 0) fail(plan, c, what, "a repeat differs");
  }
}

inline void repeats(Texts texts, std::initializer_list<int> splits, int count, int compared_every,
                    KernelsFor kernels_for, Arena& arena, cudaStream_t stream) {
  for (const char* text : texts) {
    const HostCase c(parsed(text));
    for (const int split : splits) {
      const Kernels kernels = kernels_for(c.problem, split);
      if (kernels.empty()) continue;
      const Repeats how{count, compared_every, split == 1};
      repeat(kernels, split, c, processor_result(c, split, 0), how, arena, stream, "repeats");
    }
  }
  std::printf("repeats: %d of every kernel and split on %zu problems, %lld failures\n", count,
              texts.size(), static_cast<long long>(failures));
}

// One graph of the plan; `spoil` changes the metadata before each replay.
inline void changing_replays(const octet_gemm_plan& plan, HostCase& c, const DeviceOperands& device,
                             int count, void (*spoil)(HostCase& c, Random& random),
                             cudaStream_t stream) {
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  OCT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  const Status s = context->run(plan, device.args, stream);
  OCT_CUDA(cudaStreamEndCapture(stream, &graph));
  if (!s.ok()) {
    fail(plan, c, "capture", s.message().c_str());
    return;
  }
  OCT_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  const auto update = [&](const void* to, const testing_support::Buffer& from) {
    if (from.size() == 0) return;
    OCT_CUDA(cudaMemcpyAsync(const_cast<void*>(to), from.data(),
                             static_cast<std::size_t>(from.size()), cudaMemcpyHostToDevice,
                             stream));
  };
  Random random(99);
  ++problems;
  for (int replay = 0; replay < count; ++replay) {
    spoil(c, random);
    update(device.args.group_index, c.group_index);
    update(device.args.group_offsets, c.group_offsets);
    update(device.args.group_ends, c.group_ends);
    update(device.args.group_counts, c.group_counts);
    const Bytes want = processor_result(c, 1, 0);
    device.reset_d();
    OCT_CUDA(cudaGraphLaunch(executable, stream));
    if (!compare(plan, c, device, want, stream, "replay")) break;
  }
  OCT_CUDA(cudaGraphExecDestroy(executable));
  OCT_CUDA(cudaGraphDestroy(graph));
}

// The last line. Returns the exit code.
inline int verdict() {
  std::printf("%s: %lld problems, %lld launches compared, %lld failures\n",
              failures ? "FAILED" : "PASSED", static_cast<long long>(problems),
              static_cast<long long>(launches), static_cast<long long>(failures));
  return failures ? 1 : 0;
}

}  // namespace oct::test
