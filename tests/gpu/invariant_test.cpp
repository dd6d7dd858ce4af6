// batch_invariant plans on the device: a row's bits do not depend on how many rows there are. For
// every M from 1 to 4096 the planner's own choice runs, and its D must be the first M rows of the
// D of 4096 rows, which the device-side reference confirms.
//
//   invariant_test [--step N]
//
// Prints how many plans, kernels and splits took part; exit code 1 with the first M that differs,
// 77 without a usable device.
#include <algorithm>
#include <set>

#include "core/types.h"
#include "device_session.h"
#include "plan/planner.h"

namespace {

using namespace oct;
using namespace oct::test;

constexpr int64_t kMostRows = 4096;

struct Outcome {
  int64_t plans = 0, outputs = 0, failures = 0;
  std::set<std::string> kernels;
  std::set<int> splits;
};

uint64_t differing_words(const DeviceCase& all, int64_t bytes, unsigned long long* result,
                         cudaStream_t stream) {
  unsigned long long init[2] = {0, ~0ull}, got[2];
  OCT_CUDA(cudaMemcpyAsync(result, init, sizeof init, cudaMemcpyHostToDevice, stream));
  compare_words(all.d_buffer, all.want_buffer, bytes, result, stream);
  OCT_CUDA(cudaMemcpyAsync(got, result, sizeof got, cudaMemcpyDeviceToHost, stream));
  OCT_CUDA(cudaStreamSynchronize(stream));
  return got[0];
}

// D of `rows` rows lies in the buffer of 4096 rows: what follows it must stay as it was.
void every_row_count(octet_gemm_problem p, int64_t step, Arena& arena, unsigned long long* result,
                     cudaStream_t stream, Outcome& out) {
  arena.reset();
  p.batch_invariant = 1;
  p.m = kMostRows;
  CaseOptions options;
  options.seed = static_cast<uint64_t>(p.n + p.k);
  DeviceCase all = make_case(arena, p, options, stream);
  void* const whole = arena.take(all.d_bytes);
  const int64_t element = core::size_of(p.d_type);
  for (int64_t rows = kMostRows; rows >= 1; rows -= rows > 300 ? step : 1) {
    p.m = rows;
    octet_gemm_plan plan{};
    if (const Status s = plan::plan_gemm(p, context->device_spec(), nullptr, plan); !s.ok()) {
      std::printf("FAILED: %s: %s\n", core::to_string(p).c_str(), s.message().c_str());
      ++out.failures;
      return;
    }
    octet_gemm_args args = all.args;
    args.a.rows = args.d.rows = rows;
    all.poison(stream);
    if (rows == kMostRows) {
      all.reference.split = plan.split;
      reference_gemm(all.reference, stream);
      OCT_CUDA(cudaMemcpyAsync(whole, all.want_buffer, static_cast<std::size_t>(all.d_bytes),
                               cudaMemcpyDeviceToDevice, stream));
    } else {
      const int64_t before = static_cast<char*>(all.args.d.data) - static_cast<char*>(all.d_buffer);
      OCT_CUDA(cudaMemcpyAsync(static_cast<char*>(all.want_buffer) + before,
                               static_cast<char*>(whole) + before,
                               static_cast<std::size_t>(rows * args.d.ld * element),
                               cudaMemcpyDeviceToDevice, stream));
    }
    Status s = context->load(plan.kernel);
    if (s.ok()) s = context->run(plan, args, stream);
    if (!s.ok()) {
      std::printf("FAILED: %s: %s\n", core::to_string(p).c_str(), s.message().c_str());
      ++out.failures;
      return;
    }
    const uint64_t different = differing_words(all, all.d_bytes, result, stream);
    ++out.plans;
    out.outputs += rows * p.n;
    out.kernels.insert(plan.kernel);
    out.splits.insert(plan.split);
    if (different != 0) {
      std::printf("MISMATCH: %s, %s split %d: %llu words differ from the first %lld rows of 4096\n",
                  core::to_string(p).c_str(), plan.kernel, plan.split,
                  static_cast<unsigned long long>(different), static_cast<long long>(rows));
      if (++out.failures > 3) return;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  int64_t step = 1;
  if (argc == 3 && std::strcmp(argv[1], "--step") == 0) step = std::max(1, std::atoi(argv[2]));
  const cudaStream_t stream = open_device(240);
  unsigned long long* result = nullptr;
  OCT_CUDA(cudaMalloc(reinterpret_cast<void**>(&result), 16));
  Arena arena(std::size_t{1} << 30);
  Outcome total;
  for (const auto& [n, k] :
       {std::pair<int64_t, int64_t>{576, 7168}, {2112, 7168}, {7168, 2048}, {300, 1000}}) {
    Outcome out;
    every_row_count(dense_problem(kMostRows, n, k), step, arena, result, stream, out);
    std::printf(
        "N %lld, K %lld: %lld row counts, %lld outputs, %zu kernels, %zu splits, "
        "%lld failures\n",
        static_cast<long long>(n), static_cast<long long>(k), static_cast<long long>(out.plans),
        static_cast<long long>(out.outputs), out.kernels.size(), out.splits.size(),
        static_cast<long long>(out.failures));
    // A test that only ever saw one kernel would prove nothing.
    if (out.kernels.size() < 3 || out.splits.size() != 1) ++out.failures;
    total.failures += out.failures;
    total.plans += out.plans;
  }
  std::printf("%s: %lld row counts\n", total.failures ? "FAILED" : "PASSED",
              static_cast<long long>(total.plans));
  return total.failures ? 1 : 0;
}
