// What the stages of equality_test share: kernels forced on problems that lie on the device,
// results compared there with the device's reference, counts of what was done.
#pragma once

#include <random>

#include "core/problem.h"
#include "device_session.h"
#include "options.h"

namespace oct::test {

inline unsigned long long* result;  // device: [different, first]
inline int64_t total_problems = 0, total_outputs = 0, total_runs = 0;

struct TestBed {
  Stopwatch clock;
  Options options;
  Arena arena;
  cudaStream_t stream, other;
  std::mt19937_64 rng;
};

// Fills c.d_buffer with what no kernel writes, and the other buffer as the kernel must leave D.
inline void compute_reference(DeviceCase& c, int split, cudaStream_t stream) {
  c.poison(stream);
  c.reference.split = split;
  reference_gemm(c.reference, stream);
}

inline bool must(const Status& s, const char* what) {
  if (s.ok()) return true;
  std::printf("FAILED: %s: %s\n", what, s.message().c_str());
  ++failures;
  return false;
}

// Compares the buffers of a case; prints the first difference with its coordinate, tile and both
// values.
inline bool same(const DeviceCase& c, const octet_gemm_plan& plan, cudaStream_t stream,
                 const char* what) {
  unsigned long long init[2] = {0, ~0ull}, got[2];
  OCT_CUDA(cudaMemcpyAsync(result, init, sizeof init, cudaMemcpyHostToDevice, stream));
  compare_words(c.d_buffer, c.want_buffer, c.d_bytes, result, stream);
  OCT_CUDA(cudaMemcpyAsync(got, result, sizeof got, cudaMemcpyDeviceToHost, stream));
  const cudaError_t e = cudaStreamSynchronize(stream);
  if (e != cudaSuccess) {
    std::printf("FAILED: %s: %s split %d on %s: %s\n", what, plan.kernel, plan.split,
                core::to_string(plan.problem).c_str(), cudaGetErrorString(e));
    std::fflush(stdout);
    std::_Exit(1);
  }
  if (got[0] == 0) return true;
  if (++failures > 40) return false;
  uint32_t x = 0, y = 0;
  const int64_t element = core::size_of(plan.problem.d_type);
  const int64_t at = static_cast<int64_t>(got[1]) * 2 / element * element;
  OCT_CUDA(cudaMemcpy(&x, static_cast<char*>(c.d_buffer) + at, 2 + 2 * (element == 4),
                      cudaMemcpyDeviceToHost));
  OCT_CUDA(cudaMemcpy(&y, static_cast<char*>(c.want_buffer) + at, 2 + 2 * (element == 4),
                      cudaMemcpyDeviceToHost));
  const int64_t offset =
      (at - (static_cast<char*>(c.args.d.data) - static_cast<char*>(c.d_buffer))) / element;
  const int64_t ld = c.args.d.ld;
  std::printf(
      "MISMATCH: %s: %s split %d sms %d on %s: %llu words differ; first at offset %lld (row %lld, "
      "column %lld of ld %lld): got %x, want %x; sfa strides %lld %lld, d.ld %lld\n",
      what, plan.kernel, plan.split, plan.sms, core::to_string(plan.problem).c_str(), got[0],
      static_cast<long long>(offset), static_cast<long long>(offset / ld),
      static_cast<long long>(offset % ld), static_cast<long long>(ld), x, y,
      static_cast<long long>(c.args.sfa.row_stride), static_cast<long long>(c.args.sfa.k_stride),
      static_cast<long long>(ld));
  return false;
}

inline bool check_case(DeviceCase& c, const octet_gemm_plan& plan, cudaStream_t stream,
                       const char* what) {
  compute_reference(c, plan.split, stream);
  const Status s = context->run(plan, c.args, stream);
  if (!must(s, plan.kernel)) {
    std::printf("  (%s, split %d, %s)\n", core::to_string(plan.problem).c_str(), plan.split, what);
    return false;
  }
  ++total_problems;
  ++total_runs;
  total_outputs += plan.problem.m * plan.problem.n * plan.problem.groups;
  return same(c, plan, stream, what);
}

}  // namespace oct::test
