// One benchmark run on one device: the library's context, a stream, operands, the peer, and the
// record of where and when it was.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench.h"
#include "bench_cublaslt.h"
#include "bench_cuda.h"
#include "bench_data.h"
#include "bench_layout.h"
#include "bench_report.h"
#include "bench_timer.h"
#include "device_memory.h"

namespace octet::tool {

// The operands of a problem in device memory, filled, in as many sets as keep them cold. Arguments
// fit every plan of the problem that needs no more than `workspace_bytes`.
class OperandSets {
 public:
  OperandSets(const GemmProblem& problem, std::int64_t workspace_bytes, BenchData& data);
  const std::vector<GemmArgs>& args() const { return args_; }
  int count() const { return static_cast<int>(args_.size()); }
  const OperandLayout& layout() const { return layout_; }
  const OperandBases& bases() const { return bases_; }

 private:
  OperandLayout layout_;
  DeviceBuffer a_, b_, sfa_, sfb_, c_, d_, bias_, workspace_, metadata_;
  OperandBases bases_;
  std::vector<GemmArgs> args_;
};

class BenchSession {
 public:
  // Throws Error where there is no usable device.
  explicit BenchSession(const BenchOptions& options);

  const DeviceSpec& device() const { return device_; }
  cuda::Context& context() { return context_; }
  cudaStream_t stream() const { return static_cast<cudaStream_t>(stream_.get()); }
  BenchData& data() { return data_; }
  Timer& timer() { return timer_; }
  CublasLt* peer() { return peer_.get(); }  // null where there is none
  const BenchHeader& header() const { return header_; }
  void note(const std::string& key, const std::string& value) { header_.emplace_back(key, value); }

  // Binds a plan to every set of operands; loads its kernel first.
  std::vector<cuda::BoundGemm> bind(const GemmPlan& plan, const std::vector<GemmArgs>& sets);
  // One launch of the library.
  void launch(const cuda::BoundGemm& bound) const { context_.run(bound, stream_.get()).value(); }
  Timing measure(const GemmPlan& plan, const OperandSets& operands, double floor_us,
                 bool sustained);

 private:
  static cuda::Context open(int ordinal);

  cuda::Context context_;
  DeviceSpec device_;
  DeviceStream stream_;
  BenchData data_;
  Timer timer_;
  std::unique_ptr<CublasLt> peer_;
  BenchHeader header_;
};

// The same problem launched as a dependent of the kernel before it, its weights ready.
template <typename Problem>
Problem as_dependent(Problem problem) {
  problem.dependent_launch = 1;
  problem.weights_ready = 1;
  return problem;
}

}  // namespace octet::tool
