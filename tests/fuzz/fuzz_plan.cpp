// The plan string: as fuzz_problem.cpp, for the line that names a computation entirely. Plans are
// kept in files, so their text is as little trusted as a problem's.
#include "fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace octet_fuzz;
  const std::string text(reinterpret_cast<const char*>(data), size);
  octet_gemm_plan plan{};
  const octet_gemm_plan before = plan;
  if (octet_gemm_plan_parse(text.c_str(), &plan) == OCTET_OK) {
    promise_plan_round_trip(plan);
    promise_problem_round_trip(plan.problem);
    // What was read is a plan that calls can be checked with, whatever its numbers are.
    octet_gemm_args args;
    octet_gemm_args_init(&args);
    if (octet_check(&plan, &args) != OCTET_OK) promise_sentence();
  } else {
    promise_sentence(text);
    promise(std::memcmp(&before, &plan, sizeof plan) == 0, "a refusal writes nothing");
  }
  return 0;
}
