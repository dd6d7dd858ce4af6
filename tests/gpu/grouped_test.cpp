// Problems grouped over M on the device against the processor, to the bit.
//
//   grouped_test [--problems N] [--seconds S] [--seed X] [--kernel SUBSTRING] [--small]
//                [--problem STRING]
//
// Random problems of every grouping (group counts 1 to 512, sizes around every tile's height, all
// in one group, none), each with every grouped kernel; the whole buffer of D is compared, guards,
// gaps and rows without an owner included. Then bad metadata, splits, SM budgets from 1 to 132,
// 1000 repeats, and a graph whose metadata changes between replays. Exit code 1 on a mismatch, 77
// without a usable device. A watchdog turns a hang into a failure.
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "core/check.h"
#include "cuda/context.h"
#include "device_harness.h"
#include "options.h"
#include "plan/candidates.h"
#include "plan/planner.h"

namespace {

using namespace oct;
using namespace oct::test;
std::string only_kernel;

std::vector<const char*> grouped_kernels() {
  std::vector<const char*> names;
  for (const abi::KernelRow& row : abi::kKernels) {
    if (!abi::parse_kernel(row.name).grouped) continue;
    if (!only_kernel.empty() && std::strstr(row.name, only_kernel.c_str()) == nullptr) continue;
    names.push_back(row.name);
  }
  return names;
}

void every_kernel(int count, uint64_t seed, bool spoiled, double until, Arena& arena,
                  cudaStream_t stream) {
  const char* what = spoiled ? "bad metadata" : "random problems";
  const auto make = [&](uint64_t s) { return make_grouped_case(s, spoiled); };
  random_cases(count, seed, until, what, make, [&](const GroupedCase& c) {
    const DeviceOperands device(arena, c.host, stream);
    const std::vector<const char*> kernels = grouped_kernels();
    if (!kernels.empty()) {
      // What a person is told who asks what is wrong with metadata on the device.
      const octet_gemm_plan plan = plan_for(c.host.problem, kernels[0], 1);
      const Status told = context->validate(plan, device.args, stream),
                   wanted = core::validate_metadata(c.host.problem, c.host.args());
      if (told.message() != wanted.message()) {
        fail(plan, c.host, what, ("validate: " + told.message()).c_str());
      }
    }
    for (const char* kernel : kernels) {
      run_and_compare(plan_for(c.host.problem, kernel, 1), c.host, device, c.want, stream, what);
    }
  });
}

constexpr const char* kFixed[] = {
    "offsets_g7m45n1000k700", "contiguous_g5m130n328k515", "aligned_g9m77n520k384_align8",
    "masked_g6m70n776k1030",  "contiguous_g40m3n72k200",   "offsets_g300m4n136k256",
};

void reports(Arena& arena, cudaStream_t stream) {
  for (const FieldReport& r : field_reports()) {
    HostOptions options;
    options.group_sizes = r.sizes;
    options.gaps = r.gaps;
    options.odd_strides = false;
    const HostCase c(parsed(r.problem.c_str()), options);
    const Bytes want = processor_result(c, 1, 0);
    const DeviceOperands device(arena, c, stream);
    ++problems;
    for (const char* kernel : grouped_kernels()) {
      run_and_compare(plan_for(c.problem, kernel, 1), c, device, want, stream, r.id);
    }
  }
  // F12: 10,240 further rows of -1 at the end.
  for (const char* text : {"contiguous_g4m150n256k384", "contiguous_g4m150n256k384_keeppad"}) {
    HostOptions options;
    options.gaps = false;
    options.group_sizes = {150, 1, 129, 300};
    octet_gemm_problem p = parsed(text);
    p.alignment = 128;
    // A group that nobody has rows of the right kind for: its index is made -1 below.
    options.group_sizes.push_back(10240);
    p.groups = 5;
    HostCase c(p, options);
    auto* index = c.group_index.as<int32_t>();
    for (int64_t row = c.shape.a.rows - 10240; row < c.shape.a.rows; ++row) index[row] = -1;
    const Bytes want = processor_result(c, 1, 0);
    const DeviceOperands device(arena, c, stream);
    ++problems;
    for (const char* kernel : grouped_kernels()) {
      run_and_compare(plan_for(c.problem, kernel, 1), c, device, want, stream, "F12");
    }
  }
  std::printf("field reports: %lld failures\n", static_cast<long long>(failures));
}

void sm_counts(Arena& arena, cudaStream_t stream) {
  for (const char* text : kFixed) {
    const HostCase c(parsed(text));
    const Bytes want = processor_result(c, 1, 0);
    const DeviceOperands device(arena, c, stream);
    ++problems;
    for (const char* kernel : grouped_kernels()) {
      octet_gemm_plan plan = plan_for(c.problem, kernel, 1);
      for (plan.sms = 1; plan.sms <= 132; plan.sms += plan.sms < 12 ? 1 : 5) {
        if (!run_and_compare(plan, c, device, want, stream, "SM counts")) break;
      }
    }
  }
  std::printf("SM counts: %lld failures\n", static_cast<long long>(failures));
}

void splits(Arena& arena, cudaStream_t stream) {
  for (const char* text : kFixed) {
    const HostCase c(parsed(text));
    const DeviceOperands device(arena, c, stream);
    ++problems;
    for (int split = 2; split <= 7; ++split) {
      const Bytes want = processor_result(c, split, 0);
      for (const char* kernel : grouped_kernels()) {
        if (!abi::parse_kernel(kernel).sequential) continue;
        run_and_compare(plan_for(c.problem, kernel, split), c, device, want, stream, "splits");
      }
    }
  }
  std::printf("splits: %lld failures\n", static_cast<long long>(failures));
}

void repeats(Arena& arena, cudaStream_t stream, int count) {
  unsigned long long* result;
  OCT_CUDA(cudaMalloc(reinterpret_cast<void**>(&result), 16));
  OCT_CUDA(cudaMemset(result, 0, 16));
  for (const char* text : kFixed) {
    const HostCase c(parsed(text));
    const Bytes want = processor_result(c, 1, 0);
    const DeviceOperands device(arena, c, stream);
    void* reference = arena.take(c.d.size() + 256);
    OCT_CUDA(cudaMemcpyAsync(reference, want.data(), want.size(), cudaMemcpyHostToDevice, stream));
    for (const char* kernel : grouped_kernels()) {
      octet_gemm_plan plan = plan_for(c.problem, kernel, 1);
      device.reset_d();
      for (int i = 0; i < count; ++i) {
        plan.sms = 1 + (i * 37 + 131) % 132;
        if (Status s = context->run(plan, device.args, stream); !s.ok()) {
          fail(plan, c, "repeats", s.message().c_str());
          break;
        }
        // Whole words of 16 bits; an odd byte at the end is a guard's.
        compare_words(device.d(), reference, c.d.size() / 2 * 2, result, stream);
        ++launches;
      }
      unsigned long long got[2];
      OCT_CUDA(cudaMemcpyAsync(got, result, sizeof got, cudaMemcpyDeviceToHost, stream));
      wait(stream, plan, c, "repeats");
      if (got[0] != 0) {
        fail(plan, c, "repeats", "a repeat differs");
        OCT_CUDA(cudaMemset(result, 0, 16));
      }
    }
  }
  std::printf("repeats: %d of every kernel on %zu problems, %lld failures\n", count,
              std::size(kFixed), static_cast<long long>(failures));
}

// One graph; rows move between groups from replay to replay.
void changed_counts(Arena& arena, cudaStream_t stream) {
  for (const char* text : {"offsets_g12m50n520k384", "masked_g12m50n520k384",
                           "aligned_g12m50n520k384", "contiguous_g12m50n520k384"}) {
    for (const char* kernel : grouped_kernels()) {
      octet_gemm_problem p = parsed(text);
      HostOptions options;
      options.gaps = false;
      options.poison = false;
      options.group_sizes.assign(12, 64);
      if (p.grouping == OCTET_MASKED) p.max_m = 200;
      HostCase c(p, options);
      const DeviceOperands device(arena, c, stream);
      const octet_gemm_plan plan = plan_for(p, kernel, 1);
      cudaGraph_t graph;
      cudaGraphExec_t executable;
      OCT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
      const Status s = context->run(plan, device.args, stream);
      OCT_CUDA(cudaStreamEndCapture(stream, &graph));
      if (!s.ok()) {
        fail(plan, c, "capture", s.message().c_str());
        continue;
      }
      OCT_CUDA(cudaGraphInstantiate(&executable, graph, 0));
      Random random(99);
      ++problems;
      for (int replay = 0; replay < 6; ++replay) {
        spoil(c, random);
        const auto update = [&](const void* to, const testing_support::Buffer& from) {
          if (from.size() == 0) return;
          OCT_CUDA(cudaMemcpyAsync(const_cast<void*>(to), from.data(),
                                   static_cast<std::size_t>(from.size()), cudaMemcpyHostToDevice,
                                   stream));
        };
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
  }
  std::printf("graphs with changing metadata: %lld failures\n", static_cast<long long>(failures));
}

// The planner's choice by the one call.
void planned(int count, uint64_t seed, double until, Arena& arena, cudaStream_t stream) {
  const auto plan_of = [](const HostCase& c, octet_gemm_plan& plan) {
    return plan::plan_gemm(c.problem, context->device_spec(), nullptr, plan);
  };
  const auto make = [&](uint64_t s) {
    GroupedCase c = make_grouped_case(s, false);
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

}  // namespace

int main(int argc, char** argv) {
  Options options{.problems = 600, .seconds = 60};
  parse(argc, argv, {"--problems", "--seconds", "--seed", "--kernel", "--problem", "--small"},
        options);
  only_kernel = options.kernel;
  const int count = options.problems;
  const double most_seconds = options.seconds;
  const uint64_t seed = options.seed;
  const bool small = options.small;
  const std::string& one = options.problem;
  if (Status s = cuda::Context::create(0, context); !s.ok()) {
    std::printf("SKIPPED: %s\n", s.message().c_str());
    return 77;
  }
  alarm(static_cast<unsigned>(3 * most_seconds) + 120);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::printf("%s, %zu grouped kernels\n", context->device_name(), grouped_kernels().size());
  OCT_CUDA(cudaSetDevice(0));
  cudaStream_t stream;
  OCT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  Arena arena(std::size_t{1} << 30);
  for (const char* kernel : grouped_kernels()) {
    if (Status s = context->load(kernel); !s.ok()) {
      std::printf("FAILED: %s\n", s.message().c_str());
      return 1;
    }
  }
  if (!one.empty()) {
    const HostCase c(parsed(one.c_str()));
    const Bytes want = processor_result(c, 1, 0);
    const DeviceOperands device(arena, c, stream);
    for (const char* kernel : grouped_kernels()) {
      run_and_compare(plan_for(c.problem, kernel, 1), c, device, want, stream, "one");
    }
    std::printf("%s: %lld failures\n", one.c_str(), static_cast<long long>(failures));
    return failures ? 1 : 0;
  }
  every_kernel(small ? 20 : count, seed, false, most_seconds, arena, stream);
  every_kernel(small ? 10 : count / 3, seed + 1, true, most_seconds / 3, arena, stream);
  splits(arena, stream);
  if (!small) {
    planned(count / 4, seed + 2, most_seconds / 4, arena, stream);
    reports(arena, stream);
    sm_counts(arena, stream);
    changed_counts(arena, stream);
    repeats(arena, stream, 1000);
  }
  std::printf("%s: %lld problems, %lld launches compared, %lld failures\n",
              failures ? "FAILED" : "PASSED", static_cast<long long>(problems),
              static_cast<long long>(launches), static_cast<long long>(failures));
  return failures ? 1 : 0;
}
