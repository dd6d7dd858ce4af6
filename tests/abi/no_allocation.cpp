// A new shape costs little the first time: planning it takes microseconds and no memory. malloc()
// and its like are counted for the whole program, the shared library included.
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "octet/octet.hpp"

namespace {
long allocations = 0;
}  // namespace

// Stands before the C library's.
extern "C" void* __libc_malloc(std::size_t);
extern "C" __attribute__((visibility("default"))) void* malloc(std::size_t size) {
  ++allocations;
  return __libc_malloc(size);
}

namespace {

using namespace octet;

constexpr double kMostUs = 50;

// The fastest of many calls: what others do on the machine is no matter of the planner's.
double plan_us(const GemmProblem& problem, const DeviceSpec& device) {
  double least = 1e9;
  for (int i = 0; i < 100; ++i) {
    GemmPlan plan;
    const auto start = std::chrono::steady_clock::now();
    if (octet_plan_gemm(&problem, &device, &plan) != OCTET_OK) return 1e9;
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    least = std::min(least, spent.count() * 1e6);
  }
  return least;
}

}  // namespace

int main() {
  const DeviceSpec device = DeviceSpec::preset("h200").value();
  int failures = 0;
  std::vector<GemmProblem> problems;
  for (const char* text :
       {"dense_m15n7168k2048", "dense_m2n2112k7168", "dense_m130n576k7168", "dense_m4000n4096k7168",
        "dense_m16n7168k2048_bias",  // in the table that ships
        "dense_m17n520k1000_inv_f32_acc", "batched_g7m300n2000k512_split2_sms100"}) {
    problems.push_back(GemmProblem::parse(text).value());
  }
  for (const GemmProblem& problem : problems) {
    GemmPlan plan;
    const long before = allocations;
    const octet_code code = octet_plan_gemm(&problem, &device, &plan);
    const long made = allocations - before;
    const double us = plan_us(problem, device);
    std::printf("%s: %.1f us, %ld allocations\n", problem.to_string().c_str(), us, made);
    if (code != OCTET_OK || made != 0) ++failures;
#ifdef __OPTIMIZE__
    if (us > kMostUs) ++failures;
#endif
  }
  // The counter counts.
  const long before = allocations;
  const bool refused = !GemmProblem::parse("no problem at all, and that is said at length").ok();
  if (!refused || allocations == before) ++failures;
  if (failures > 0) std::printf("FAILED: %d\n", failures);
  return failures == 0 ? 0 : 1;
}
