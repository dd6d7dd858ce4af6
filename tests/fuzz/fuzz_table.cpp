// The tuned table: a file that somebody may have edited. Any text is read or refused with a
// sentence; what is read prints as one text that reads back, and planning with it gives plans that
// are plans, whatever it says.
#include "fuzz_input.h"

namespace {

std::string print(const octet_tuned_table* table) {
  using namespace octet_fuzz;
  std::size_t needed = 0;
  promise(octet_tuned_table_print(table, nullptr, 0, &needed) == OCTET_OK, "a table prints");
  Buffer exact(static_cast<int64_t>(needed));
  char* const to = reinterpret_cast<char*>(exact.data());
  promise(octet_tuned_table_print(table, to, needed, nullptr) == OCTET_OK, "exact room is enough");
  promise(octet_tuned_table_print(table, to, needed - 1, nullptr) != OCTET_OK,
          "one byte less is not");
  return to;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace octet_fuzz;
  const std::string text(reinterpret_cast<const char*>(data), size);
  octet_tuned_table* table = nullptr;
  if (octet_tuned_table_create(text.c_str(), &table) != OCTET_OK) {
    promise_sentence(text);
    promise(table == nullptr, "a refusal writes nothing");
    return 0;
  }
  const std::string printed = print(table);
  octet_tuned_table* again = nullptr;
  promise(octet_tuned_table_create(printed.c_str(), &again) == OCTET_OK, "a printed table parses");
  promise(print(again) == printed, "one table has one text");
  octet_tuned_table_destroy(again);

  for (const char* name : {"h200", "h20"}) {
    octet_device_spec device;
    promise(octet_device_preset(name, &device) == OCTET_OK, "the preset is there");
    if (octet_tuned_table_check(table, &device) != OCTET_OK) promise_sentence(text);
    // Problems of the table, as far as its lines name some.
    for (std::size_t at = printed.find('\n'); at != std::string::npos;
         at = printed.find('\n', at + 1)) {
      const std::string line = printed.substr(at + 1, printed.find(':', at) - at - 1);
      octet_gemm_problem problem;
      if (octet_gemm_problem_parse(line.c_str(), &problem) != OCTET_OK) continue;
      octet_gemm_plan plan{};
      if (octet_plan_gemm_tuned(&problem, &device, table, &plan) == OCTET_OK) {
        promise_plan_round_trip(plan);
        if (octet_tuned_table_set(table, &plan) == OCTET_OK) {
          octet_gemm_plan same{};
          promise(octet_plan_gemm_tuned(&problem, &device, table, &same) == OCTET_OK &&
                      octet_gemm_plan_equal(&plan, &same) == 1,
                  "a choice that is set is the choice");
        } else {
          promise_sentence(text);
        }
      } else {
        promise_sentence(text);
      }
    }
  }
  octet_tuned_table_destroy(table);
  return 0;
}
