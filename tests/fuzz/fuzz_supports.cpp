// Structs of a caller who never called an init function, or whose language binding has a fault: any
// bytes in a problem and in a device. Support, plan and explanation agree with each other, and what
// is accepted has a string of its own.
#include "fuzz_input.h"

namespace {

using namespace octet_fuzz;

octet_gemm_problem take_any_problem(Input& input) {
  if (input.one_in(2)) {
    octet_gemm_problem p = take_problem(input);
    p.m = input.wild();
    p.n = input.wild();
    p.k = input.wild();
    if (p.grouping != OCTET_DENSE || input.one_in(8)) p.groups = input.wild();
    if (p.grouping == OCTET_MASKED || input.one_in(8)) p.max_m = input.wild();
    if (input.one_in(3)) p.sm_budget = input.take<int32_t>();
    p.dependent_launch = input.one_in(2);
    p.weights_ready = input.one_in(2);
    p.even = input.one_in(2);
    p.seed = input.take<uint32_t>();
    return p;
  }
  const bool sized = !input.one_in(4);
  auto p = input.take<octet_gemm_problem>();
  if (sized) p.struct_size = sizeof p;
  return p;
}

octet_device_spec take_device(Input& input) {
  octet_device_spec device{};
  if (!input.one_in(3)) {
    const auto last = octet_device_preset_count() - 1;
    const char* name = octet_device_preset_name(static_cast<int32_t>(input.between(0, last)));
    promise(name != nullptr, "every preset has a name");
    promise(octet_device_preset(name, &device) == OCTET_OK, "every name has a preset");
    if (input.one_in(4)) device.sms = input.take<int32_t>();
    return device;
  }
  const bool sized = !input.one_in(4);
  device = input.take<octet_device_spec>();
  if (sized) device.struct_size = sizeof device;
  return device;
}

// A refusal may repeat the device's name.
std::string name_of(const octet_device_spec& device) {
  return {device.name, strnlen(device.name, sizeof device.name)};
}

// Lists and costs every candidate: most of the time of a run.
void explain(Input& input, const octet_gemm_problem& problem, const octet_device_spec& device,
             bool supported) {
  std::size_t needed = 0;
  const octet_code code = octet_plan_explain(&problem, &device, nullptr, 0, &needed);
  if (supported) promise(code == OCTET_OK, "what is supported is explained");
  if (code != OCTET_OK) return promise_sentence(name_of(device));
  const std::size_t room = input.pick<std::size_t>({needed, needed / 2 + 1, 1});
  Buffer text(static_cast<int64_t>(room));
  char* const to = reinterpret_cast<char*>(text.data());
  promise(octet_plan_explain(&problem, &device, to, room, nullptr) == OCTET_OK, "explain");
  promise(std::strlen(to) == room - 1, "the explanation fills its room and is terminated");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  Input input(data, size);
  const octet_gemm_problem problem = take_any_problem(input);
  const octet_device_spec device = take_device(input);
  octet_gemm_plan plan{};
  const octet_code supported = octet_supports(&problem, &device);
  const std::string reason = octet_status_message();
  if (supported != OCTET_OK) promise_sentence(name_of(device));
  promise(octet_plan_gemm(&problem, &device, &plan) == supported, "support and plan agree");
  if (supported == OCTET_OK) {
    promise(octet_gemm_problem_equal(&problem, &plan.problem) == 1, "a plan keeps its problem");
    promise_plan_round_trip(plan);
  } else {
    promise(reason == octet_status_message(), "support and plan give the same reason");
  }
  if (input.one_in(4)) explain(input, problem, device, supported == OCTET_OK);

  char text[OCTET_TEXT_CAPACITY];
  if (octet_gemm_problem_print(&problem, text, sizeof text) == OCTET_OK) {
    promise_problem_round_trip(problem);
  } else {
    promise_sentence();
    promise(supported != OCTET_OK, "what is supported has a string");
  }
  return 0;
}
