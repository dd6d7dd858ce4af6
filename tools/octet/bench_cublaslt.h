// The peer that every run carries along: cuBLASLt on the same operands, with one scale for each
// tensor (less work than ours) and, where it runs, with 1x128 and 128x128 scales. The library is
// opened at run time, and a machine without it has empty columns.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench_cuda.h"
#include "bench_timer.h"
#include "cublaslt_abi.h"
#include "octet/octet.hpp"

namespace octet::tool {

struct LtTiming {
  Timing chosen;          // by its heuristic: what a program that asks cuBLASLt gets
  double fastest_us = 0;  // of the first algorithms it names, each tried
};

class CublasLt {
 public:
  // Null, with the reason in words, where there is none.
  static std::unique_ptr<CublasLt> open(cudaStream_t stream, bool fast_accumulation,
                                        std::string& why_not);
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  std::string version() const;  // "13.1.1"

  enum class Scaling { kPerTensor, kBlocks };
  // Measures the algorithm that its heuristic names first, and the fastest of the first few.
  // Nothing if it does not take the problem; why_not() says what it answered.
  std::optional<LtTiming> measure(const GemmProblem& problem, const std::vector<GemmArgs>& sets,
                                  Scaling scaling, Timer& timer, double floor_us, bool sustained);
  const std::string& why_not() const { return why_not_; }

 private:
  CublasLt() = default;
  friend class LtProduct;

  lt::Functions f_{};
  lt::Handle handle_ = nullptr;
  cudaStream_t stream_ = nullptr;
  bool fast_accumulation_ = true;
  DeviceBuffer workspace_, one_;
  std::string why_not_;
};

}  // namespace octet::tool
