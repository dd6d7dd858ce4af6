// Times launches the way every number of this project is obtained: captured in a CUDA graph, one
// replay between two events, 10 ms of rest before each, the median of at least 7 replays of at
// least 4 ms.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <optional>

#include "bench_cuda.h"

namespace octet::tool {

struct Timing {
  double us = 0;  // a launch
  double spread = 0;
  std::optional<double> sustained_us;  // a launch, in the last of two seconds without rest
};

class Timer {
 public:
  explicit Timer(cudaStream_t stream);

  // `enqueue(i)` puts launch i on the stream; launch i uses operand set i % sets. `least_us` is
  // what a launch takes at least, as far as known.
  Timing measure(const std::function<void(int)>& enqueue, int sets, double least_us,
                 bool sustained);
  // Roughly, in a few milliseconds: for choosing between algorithms.
  double glance(const std::function<void(int)>& enqueue, int sets, double least_us);

 private:
  GraphExec instantiate(const std::function<void(int)>& enqueue, int launches);
  double replay_us(const GraphExec& graph);  // of the whole graph
  double sustained_us(const GraphExec& graph, int launches);

  cudaStream_t stream_;
  Event before_, after_;
};

}  // namespace octet::tool
