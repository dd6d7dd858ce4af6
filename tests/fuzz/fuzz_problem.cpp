// The problem string: any text is read or refused with a sentence, and what is read prints as one
// string that reads back as the same problem.
#include "fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace octet_fuzz;
  const std::string text(reinterpret_cast<const char*>(data), size);
  octet_gemm_problem problem;
  octet_gemm_problem_init(&problem);
  problem.m = 12345;
  const octet_gemm_problem before = problem;
  if (octet_gemm_problem_parse(text.c_str(), &problem) == OCTET_OK) {
    promise_problem_round_trip(problem);
    bool made = false;
    const octet_gemm_plan plan = take_plan(problem, made);
    promise(made, "the processor computes every problem that can be written");
    promise_plan_round_trip(plan);
  } else {
    promise_sentence(text);
    promise(std::memcmp(&before, &problem, sizeof problem) == 0, "a refusal writes nothing");
  }
  return 0;
}
