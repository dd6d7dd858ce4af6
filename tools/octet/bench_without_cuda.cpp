// `octet bench` in a build without nvcc: the runtime that it is made of was not there either.
#include <fmt/format.h>

#include "bench.h"
#include "complain.h"

namespace octet::tool {
namespace {

int refuse() {
  complain(
      "octet: this build has no kernels (" OCTET_WHY_NO_KERNELS
      "), so there is nothing to time: build it with OCTET_CUDA=require, where nvcc is installed "
      "(--dry-run shows what would be done)\n");
  return 3;
}

}  // namespace

int bench_problems(const BenchOptions&, CandidateRun*) { return refuse(); }
int bench_chain(const BenchOptions&) { return refuse(); }
int bench_host_cost(const BenchOptions&) { return refuse(); }

}  // namespace octet::tool
