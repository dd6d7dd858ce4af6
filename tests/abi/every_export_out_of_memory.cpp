// Every exported function while memory is out: from its n-th allocation on, and at the n-th alone,
// for every n, each time in a thread that has not failed before. A call may refuse; it may not
// throw across the border, nor end the process. The names come from exported_symbols.txt, so that a
// new function without a call here is a failure.
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "octet/octet.h"
#include "small_gemm.h"
#include "square_quantize.h"

extern "C" void* __libc_malloc(std::size_t bytes);
extern "C" void* __libc_calloc(std::size_t count, std::size_t bytes);
extern "C" void* __libc_realloc(void* memory, std::size_t bytes);

namespace {

thread_local bool counting = false;
thread_local int left = 0;
thread_local bool only_one = false;

bool fails() {
  if (!counting) return false;
  const bool now = only_one ? left == 0 : left <= 0;
  --left;
  if (now) errno = ENOMEM;  // the C library insists
  return now;
}

}  // namespace

extern "C" void* malloc(std::size_t bytes) { return fails() ? nullptr : __libc_malloc(bytes); }
extern "C" void* calloc(std::size_t count, std::size_t bytes) {
  return fails() ? nullptr : __libc_calloc(count, bytes);
}
extern "C" void* realloc(void* memory, std::size_t bytes) {
  return fails() ? nullptr : __libc_realloc(memory, bytes);
}

namespace {

octet_abi::SmallGemm gemm(2.0f);
octet_abi::SquareQuantize<256> square;
octet_gemm_problem problem;
octet_device_spec device;
octet_gemm_plan plan;
octet_gemm_args args;
octet_cpu_options options;
octet_quantize_args quantizing;
octet_tuned_table* table = nullptr;
char plan_text[4096];
char text[1 << 16];
constexpr const char* kTable = "octet tuned table 1\ndevice: h200\nsms: 132\n";

bool prepare() {
  octet_gemm_args_init(&args);
  gemm.fill(args);
  octet_cpu_options_init(&options);
  options.threads = 3;
  quantizing = square.args(3);
  return octet_gemm_problem_parse(octet_abi::SmallGemm::text(), &problem) == OCTET_OK &&
         octet_device_preset("cpu", &device) == OCTET_OK &&
         octet_plan_gemm(&problem, &device, &plan) == OCTET_OK &&
         octet_gemm_plan_print(&plan, plan_text, sizeof plan_text) == OCTET_OK &&
         octet_tuned_table_create(kTable, &table) == OCTET_OK;
}

// What a call that cannot fail returns here.
constexpr octet_code kNoCode = OCTET_OK;

template <typename Call>
std::function<octet_code()> cannot_fail(Call call) {
  return [call] {
    static_cast<void>(call());
    return kNoCode;
  };
}

std::map<std::string, std::function<octet_code()>> calls() {
  octet_cuda_context* const none = nullptr;
  return {
      {"octet_check", [] { return octet_check(&plan, &args); }},
      {"octet_code_name", cannot_fail([] { return octet_code_name(1); })},
      {"octet_cpu_dequantize", [] { return octet_cpu_dequantize(&quantizing); }},
      {"octet_cpu_options_init", cannot_fail([] {
         octet_cpu_options other;
         octet_cpu_options_init(&other);
       })},
      {"octet_cpu_quantize", [] { return octet_cpu_quantize(&quantizing); }},
      {"octet_cpu_run", [] { return octet_cpu_run(&plan, &args, &options, nullptr); }},
      {"octet_cuda_bind",
       [=] {
         octet_cuda_bound* bound = nullptr;
         return octet_cuda_bind(none, &plan, &args, &bound);
       }},
      {"octet_cuda_bound_destroy", cannot_fail([] { return octet_cuda_bound_destroy(nullptr); })},
      {"octet_cuda_context_create",
       [] {
         octet_cuda_context* context = nullptr;
         const octet_code code = octet_cuda_context_create(0, &context);
         octet_cuda_context_destroy(context);
         return code;
       }},
      {"octet_cuda_context_destroy", cannot_fail([=] { return octet_cuda_context_destroy(none); })},
      {"octet_cuda_context_device",
       [=] {
         octet_device_spec spec;
         return octet_cuda_context_device(none, &spec);
       }},
      {"octet_cuda_context_set_table", [=] { return octet_cuda_context_set_table(none, table); }},
      {"octet_cuda_device_count", cannot_fail([] { return octet_cuda_device_count(); })},
      {"octet_cuda_device_name", [] { return octet_cuda_device_name(0, text, sizeof text); }},
      {"octet_cuda_device_spec",
       [] {
         octet_device_spec spec;
         return octet_cuda_device_spec(0, &spec);
       }},
      {"octet_cuda_driver_version",
       [] {
         int32_t version = 0;
         return octet_cuda_driver_version(&version);
       }},
      {"octet_cuda_gemm", [=] { return octet_cuda_gemm(none, &problem, &args, nullptr); }},
      {"octet_cuda_kernel_count", cannot_fail([] { return octet_cuda_kernel_count(); })},
      {"octet_cuda_kernel_name", cannot_fail([] { return octet_cuda_kernel_name(0); })},
      {"octet_cuda_prepare", [=] { return octet_cuda_prepare(none, &plan, 1); }},
      {"octet_cuda_rebind", [=] { return octet_cuda_rebind(none, nullptr, &args); }},
      {"octet_cuda_validate", [=] { return octet_cuda_validate(none, &plan, &args, nullptr); }},
      {"octet_cuda_run", [=] { return octet_cuda_run(none, &plan, &args, nullptr); }},
      {"octet_cuda_run_bound", [=] { return octet_cuda_run_bound(none, nullptr, nullptr); }},
      {"octet_device_preset",
       [] {
         octet_device_spec spec;
         return octet_device_preset("a device of no such name", &spec);
       }},
      {"octet_device_preset_count", cannot_fail([] { return octet_device_preset_count(); })},
      {"octet_device_preset_name", cannot_fail([] { return octet_device_preset_name(0); })},
      {"octet_gemm_args_init", cannot_fail([] {
         octet_gemm_args other;
         octet_gemm_args_init(&other);
       })},
      {"octet_gemm_plan_equal", cannot_fail([] { return octet_gemm_plan_equal(&plan, &plan); })},
      {"octet_gemm_plan_parse",
       [] {
         octet_gemm_plan parsed;
         return octet_gemm_plan_parse(plan_text, &parsed);
       }},
      {"octet_gemm_plan_print", [] { return octet_gemm_plan_print(&plan, text, sizeof text); }},
      {"octet_gemm_problem_equal",
       cannot_fail([] { return octet_gemm_problem_equal(&problem, &problem); })},
      {"octet_gemm_problem_hash", cannot_fail([] { return octet_gemm_problem_hash(&problem); })},
      {"octet_gemm_problem_init", cannot_fail([] {
         octet_gemm_problem other;
         octet_gemm_problem_init(&other);
       })},
      {"octet_gemm_problem_parse",
       [] {
         octet_gemm_problem parsed;
         return octet_gemm_problem_parse("dense_m1n1k1_no_such_option", &parsed);
       }},
      {"octet_gemm_problem_print",
       [] { return octet_gemm_problem_print(&problem, text, sizeof text); }},
      {"octet_isa_available", cannot_fail([] { return octet_isa_available(OCTET_ISA_AVX2); })},
      {"octet_isa_name", cannot_fail([] { return octet_isa_name(OCTET_ISA_AVX2); })},
      {"octet_plan_candidate",
       [] {
         octet_gemm_plan made;
         octet_device_spec h200;
         const octet_code named = octet_device_preset("h200", &h200);
         if (named != OCTET_OK) return named;
         return octet_plan_candidate(&problem, &h200, 0, &made, nullptr);
       }},
      {"octet_plan_explain",
       [] { return octet_plan_explain(&problem, &device, text, sizeof text, nullptr); }},
      {"octet_plan_explain_tuned",
       [] {
         return octet_plan_explain_tuned(&problem, &device, table, text, sizeof text, nullptr);
       }},
      {"octet_plan_gemm",
       [] {
         octet_gemm_plan made;
         return octet_plan_gemm(&problem, &device, &made);
       }},
      {"octet_plan_gemm_tuned",
       [] {
         octet_gemm_plan made;
         return octet_plan_gemm_tuned(&problem, &device, table, &made);
       }},
      {"octet_quantize_args_init", cannot_fail([] {
         octet_quantize_args other;
         octet_quantize_args_init(&other);
       })},
      {"octet_ref_dequantize", [] { return octet_ref_dequantize(&quantizing); }},
      {"octet_ref_quantize", [] { return octet_ref_quantize(&quantizing); }},
      {"octet_ref_run", [] { return octet_ref_run(&plan, &args); }},
      {"octet_status_message", cannot_fail([] { return octet_status_message(); })},
      {"octet_supports", [] { return octet_supports(&problem, nullptr); }},
      {"octet_tuned_table_check", [] { return octet_tuned_table_check(table, &device); }},
      {"octet_tuned_table_create",
       [] {
         octet_tuned_table* made = nullptr;
         const octet_code code = octet_tuned_table_create(kTable, &made);
         octet_tuned_table_destroy(made);
         return code;
       }},
      {"octet_tuned_table_destroy", cannot_fail([] { return octet_tuned_table_destroy(nullptr); })},
      {"octet_tuned_table_print",
       [] { return octet_tuned_table_print(table, text, sizeof text, nullptr); }},
      {"octet_tuned_table_set", [] { return octet_tuned_table_set(table, &plan); }},
      {"octet_validate", [] { return octet_validate(&plan, &args); }},
      {"octet_version", cannot_fail([] { return octet_version(); })},
  };
}

// Returns whether an allocation failed.
bool call_with(const std::string& name, const std::function<octet_code()>& call, int n, bool one,
               int& failures) {
  bool reached = false;
  std::thread([&] {
    left = n;
    only_one = one;
    counting = true;
    const octet_code code = call();
    counting = false;
    reached = left < 0;
    const bool said = code == OCTET_OK || octet_status_message()[0] != 0;
    if (code >= OCTET_OK && code < OCTET_INTERNAL && said) return;
    std::printf("FAILED: %s, allocation %d%s: code %d, \"%s\"\n", name.c_str(), n,
                one ? " alone" : " and those after it", code, octet_status_message());
    ++failures;
  }).join();
  return reached;
}

}  // namespace

int main(int, char** arguments) {
  constexpr int kMostAllocations = 2000;  // a list of candidates tells of every kernel
  int failures = 0, failed = 0;
  if (!prepare()) {
    std::printf("FAILED: %s\n", octet_status_message());
    return 1;
  }
  const auto all = calls();
  std::set<std::string> names;
  std::ifstream symbols(arguments[1]);
  for (std::string line; std::getline(symbols, line);) {
    if (!line.empty() && line[0] != '#') names.insert(line);
  }
  for (const std::string& name : names) {
    if (all.count(name) > 0) continue;
    std::printf("FAILED: %s is exported and not called here\n", name.c_str());
    ++failures;
  }
  if (names.size() != all.size()) {
    std::printf("FAILED: %zu names in %s, %zu calls\n", names.size(), arguments[1], all.size());
    ++failures;
  }
  for (const auto& [name, call] : all) {
    for (const bool one : {false, true}) {
      int n = 0;
      while (n < kMostAllocations && call_with(name, call, n, one, failures)) ++n;
      failed += n;
      if (n < kMostAllocations) continue;
      std::printf("FAILED: %s never ran out of allocations to fail\n", name.c_str());
      ++failures;
    }
  }
  octet_tuned_table_destroy(table);
  std::printf("%d calls whose memory ran out\n", failed);
  return failures > 0 || failed < 100 ? 1 : 0;
}
