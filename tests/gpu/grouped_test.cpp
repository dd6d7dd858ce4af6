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
#include "device_case.h"
#include "grouped_case.h"
#include "options.h"
#include "plan/candidates.h"
#include "plan/planner.h"

namespace {

using namespace oct;
using namespace oct::test;
using Bytes = std::vector<uint8_t>;

std::unique_ptr<cuda::Context> context;
std::string only_kernel;
int64_t problems = 0, launches = 0, failures = 0;

// A case's operands on the device, one memory for all cases.
class DeviceOperands {
 public:
  DeviceOperands(Arena& arena, const HostCase& c, cudaStream_t stream) : c_(c), stream_(stream) {
    arena.reset();
    args = c.args();
    const auto copy = [&](const testing_support::Buffer& x) -> char* {
      if (x.size() == 0) return nullptr;
      // As far from a multiple of 256 as on the host.
      const auto offset = reinterpret_cast<uintptr_t>(x.data()) % 256;
      char* to = static_cast<char*>(arena.take(x.size() + 256)) + offset;
      OCT_CUDA(cudaMemcpyAsync(to, x.data(), static_cast<std::size_t>(x.size()),
                               cudaMemcpyHostToDevice, stream));
      return to;
    };
    args.a.data = copy(c.a);
    args.b.data = copy(c.b);
    args.sfa.data = reinterpret_cast<float*>(copy(c.sfa));
    args.sfb.data = reinterpret_cast<float*>(copy(c.sfb));
    args.bias = copy(c.bias);
    args.group_index = copy(c.group_index);
    args.group_offsets = copy(c.group_offsets);
    args.group_ends = copy(c.group_ends);
    args.group_counts = copy(c.group_counts);
    d_ = copy(c.d);
    args.d.data = d_ == nullptr ? nullptr : d_ + c.d_guard;
    if (c.problem.accumulate) args.c.data = c.options.c_is_d ? args.d.data : copy(c.c);
  }

  void reset_d() const {
    OCT_CUDA(cudaMemcpyAsync(d_, c_.d.data(), static_cast<std::size_t>(c_.d.size()),
                             cudaMemcpyHostToDevice, stream_));
  }
  void fetch_d(Bytes& out) const {
    out.resize(static_cast<std::size_t>(c_.d.size()));
    OCT_CUDA(cudaMemcpyAsync(out.data(), d_, out.size(), cudaMemcpyDeviceToHost, stream_));
  }
  char* d() const { return d_; }

  octet_gemm_args args;

 private:
  const HostCase& c_;
  const cudaStream_t stream_;
  char* d_ = nullptr;
};

octet_gemm_plan plan_for(const octet_gemm_problem& p, const char* kernel, int split) {
  octet_gemm_plan plan{};
  plan.struct_size = sizeof plan;
  plan.problem = p;
  plan.split = split;
  std::snprintf(plan.kernel, sizeof plan.kernel, "%s", kernel);
  std::snprintf(plan.device, sizeof plan.device, "h200");
  plan.sms = static_cast<int32_t>(
      plan::most_ctas(abi::parse_kernel(kernel), p, context->device_spec(), split));
  return plan;
}

void fail(const octet_gemm_plan& plan, const HostCase& c, const char* what, const char* why) {
  if (++failures <= 30) {
    std::printf("FAILED: %s: %s sms %d split %d, %s: %s\n", what, plan.kernel, plan.sms, plan.split,
                c.name().c_str(), why);
  }
}

void wait(cudaStream_t stream, const octet_gemm_plan& plan, const HostCase& c, const char* what) {
  const cudaError_t e = cudaStreamSynchronize(stream);
  if (e == cudaSuccess) return;
  fail(plan, c, what, cudaGetErrorString(e));
  std::fflush(stdout);
  std::_Exit(1);
}

// Row and column of the first byte that differs.
std::string first_difference(const HostCase& c, const Bytes& got, const Bytes& want) {
  std::size_t at = 0, count = 0;
  for (std::size_t i = got.size(); i-- > 0;) {
    if (got[i] != want[i]) {
      at = i;
      ++count;
    }
  }
  const int64_t element = core::size_of(c.problem.d_type);
  const int64_t offset = (static_cast<int64_t>(at) - c.d_guard) / element;
  const int64_t stride = std::max<int64_t>(c.shape.d.group_stride, 1);
  const int64_t group = c.shape.d.group_stride > 0 ? offset / stride : 0;
  const int64_t inside = c.shape.d.group_stride > 0 ? offset % stride : offset;
  char text[200];
  std::snprintf(
      text, sizeof text,
      "%zu bytes differ, first in buffer %lld row %lld column %lld of %lld (ld %lld): got "
      "%02x, want %02x",
      count, static_cast<long long>(group), static_cast<long long>(inside / c.shape.d.ld),
      static_cast<long long>(inside % c.shape.d.ld), static_cast<long long>(c.shape.d.rows),
      static_cast<long long>(c.shape.d.ld), got[at], want[at]);
  return text;
}

bool compare(const octet_gemm_plan& plan, const HostCase& c, const DeviceOperands& device,
             const Bytes& want, cudaStream_t stream, const char* what) {
  wait(stream, plan, c, what);
  Bytes got;
  device.fetch_d(got);
  wait(stream, plan, c, what);
  ++launches;
  if (got == want) return true;
  fail(plan, c, what, first_difference(c, got, want).c_str());
  return false;
}

bool run_and_compare(const octet_gemm_plan& plan, const HostCase& c, const DeviceOperands& device,
                     const Bytes& want, cudaStream_t stream, const char* what) {
  device.reset_d();
  if (Status s = context->run(plan, device.args, stream); !s.ok()) {
    fail(plan, c, what, s.message().c_str());
    return false;
  }
  return compare(plan, c, device, want, stream, what);
}

std::vector<const char*> grouped_kernels() {
  std::vector<const char*> names;
  for (const abi::KernelRow& row : abi::kKernels) {
    if (!abi::parse_kernel(row.name).grouped) continue;
    if (!only_kernel.empty() && std::strstr(row.name, only_kernel.c_str()) == nullptr) continue;
    names.push_back(row.name);
  }
  return names;
}

// The processor's results are made by many threads, the device serves one case at a time.
template <typename OnDevice>
void random_cases(int count, uint64_t seed, bool spoiled, double until, const char* what,
                  OnDevice on_device) {
  std::atomic<int> next{0};
  std::mutex device_mutex;
  const auto start = std::chrono::steady_clock::now();
  const auto work = [&] {
    for (int i = next++; i < count; i = next++) {
      const double seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (seconds > until) return;
      const GroupedCase c = make_grouped_case(seed * 1000003 + static_cast<uint64_t>(i), spoiled);
      const std::lock_guard lock(device_mutex);
      ++problems;
      on_device(c);
    }
  };
  std::vector<std::thread> threads;
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  for (unsigned i = 0; i < std::min(cores, 16u); ++i) threads.emplace_back(work);
  for (std::thread& t : threads) t.join();
  std::printf("%s: %lld problems, %lld launches so far, %lld failures\n", what,
              static_cast<long long>(problems), static_cast<long long>(launches),
              static_cast<long long>(failures));
}

void every_kernel(int count, uint64_t seed, bool spoiled, double until, Arena& arena,
                  cudaStream_t stream) {
  const char* what = spoiled ? "bad metadata" : "random problems";
  random_cases(count, seed, spoiled, until, what, [&](const GroupedCase& c) {
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

octet_gemm_problem parsed(const char* text) {
  octet_gemm_problem p;
  if (Status s = core::parse_problem(text, p); !s.ok()) {
    std::printf("FAILED: %s: %s\n", text, s.message().c_str());
    std::_Exit(1);
  }
  return p;
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
  random_cases(count, seed, false, until, "planned", [&](const GroupedCase& c) {
    const DeviceOperands device(arena, c.host, stream);
    octet_gemm_plan plan{};
    Status s = plan::plan_gemm(c.host.problem, context->device_spec(), nullptr, plan);
    if (s.ok()) s = context->gemm(c.host.problem, device.args, stream);
    if (!s.ok()) {
      fail(plan, c.host, "gemm", s.message().c_str());
      return;
    }
    const Bytes want = plan.split == 1 ? c.want : processor_result(c.host, plan.split, 0);
    compare(plan, c.host, device, want, stream, "gemm");
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
