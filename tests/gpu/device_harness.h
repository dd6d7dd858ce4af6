// What tests that compare the device with the processor share: one device, operands copied as a
// case lays them out in host memory, whole buffers of D compared, counts of what was done.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "device_session.h"
#include "grouped_case.h"

namespace oct::test {

using Bytes = std::vector<uint8_t>;

inline int64_t problems = 0, launches = 0;

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

inline void fail(const octet_gemm_plan& plan, const HostCase& c, const char* what,
                 const char* why) {
  if (++failures <= 30) {
    std::printf("FAILED: %s: %s sms %d split %d, %s: %s\n", what, plan.kernel, plan.sms, plan.split,
                c.name().c_str(), why);
  }
}

inline void wait(cudaStream_t stream, const octet_gemm_plan& plan, const HostCase& c,
                 const char* what) {
  const cudaError_t e = cudaStreamSynchronize(stream);
  if (e == cudaSuccess) return;
  fail(plan, c, what, cudaGetErrorString(e));
  std::fflush(stdout);
  std::_Exit(1);
}

// Row and column of the first byte that differs.
inline std::string first_difference(const HostCase& c, const Bytes& got, const Bytes& want) {
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

inline bool compare(const octet_gemm_plan& plan, const HostCase& c, const DeviceOperands& device,
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

inline bool run_and_compare(const octet_gemm_plan& plan, const HostCase& c,
                            const DeviceOperands& device, const Bytes& want, cudaStream_t stream,
                            const char* what) {
  device.reset_d();
  if (Status s = context->run(plan, device.args, stream); !s.ok()) {
    fail(plan, c, what, s.message().c_str());
    return false;
  }
  return compare(plan, c, device, want, stream, what);
}

// The processor's results are made by many threads, the device serves one case at a time.
template <typename Make, typename OnDevice>
void random_cases(int count, uint64_t seed, double until, const char* what, Make make,
                  OnDevice on_device) {
  std::atomic<int> next{0};
  std::mutex device_mutex;
  const Stopwatch clock;
  const auto work = [&] {
    for (int i = next++; i < count; i = next++) {
      if (clock.seconds() > until) return;
      const auto c = make(seed * 1000003 + static_cast<uint64_t>(i));
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

inline octet_gemm_problem parsed(const char* text) {
  octet_gemm_problem p;
  if (Status s = core::parse_problem(text, p); !s.ok()) {
    std::printf("FAILED: %s: %s\n", text, s.message().c_str());
    std::_Exit(1);
  }
  return p;
}

}  // namespace oct::test
