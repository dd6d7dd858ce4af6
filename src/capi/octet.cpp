// The C interface: turns C structs into calls of the rooms below and every failure into a code and
// a sentence. Nothing is thrown across this border and nothing is decided here.
#include "octet/octet.h"

#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "capi/guard.h"
#include "core/check.h"
#include "core/problem.h"
#include "core/quantize_shape.h"
#include "core/refusals.h"
#include "core/views.h"
#include "cpu/isa.h"
#include "cpu/quantize.h"
#include "cpu/run.h"
#include "plan/device_presets.h"
#include "plan/planner.h"
#include "ref/gemm.h"
#include "ref/quantize.h"

namespace {

using oct::Status;
using oct::capi::copy_text;
using oct::capi::guarded;
using oct::capi::message_buffer;
using oct::capi::null;
using oct::core::refuse;
using oct::core::Rule;

Status check_problem_pointer(const octet_gemm_problem* problem) {
  if (problem == nullptr) return null("problem", "an octet_gemm_problem");
  return oct::core::check_problem(*problem);
}

template <typename Struct>
Status check_optional(const char* arg, const Struct* x, const char* init) {
  if (x == nullptr || x->struct_size == sizeof *x) return {};
  return refuse(Rule::kStructSize, {{"arg", arg},
                                    {"got", std::to_string(x->struct_size)},
                                    {"want", std::to_string(sizeof *x)},
                                    {"init", init}});
}

Status check_call(const octet_gemm_plan* plan, const octet_gemm_args* args) {
  if (plan == nullptr) return null("plan", "an octet_gemm_plan");
  if (args == nullptr) return null("args", "an octet_gemm_args");
  if (Status s = oct::plan::check_plan(*plan); !s.ok()) return s;
  return oct::core::check_args(*plan, *args);
}

Status check_quantize_call(const octet_quantize_args* args) {
  if (args == nullptr) return null("args", "an octet_quantize_args");
  return oct::core::check_quantize(*args);
}

Status check_dequantize_call(const octet_quantize_args* args) {
  if (args == nullptr) return null("args", "an octet_quantize_args");
  return oct::core::check_dequantize(*args);
}

Status cpu_run(const octet_gemm_plan* plan, const octet_gemm_args* args,
               const octet_cpu_options* options, octet_cpu_report* report) {
  if (Status s = check_optional("options", options, "octet_cpu_options_init"); !s.ok()) return s;
  if (Status s = check_call(plan, args); !s.ok()) return s;
  oct::cpu::Options cpu_options;
  if (options != nullptr) {
    if (options->threads < 0 || options->threads > oct::core::kMaxThreads) {
      return refuse(Rule::kThreads, {{"got", std::to_string(options->threads)},
                                     {"want", std::to_string(oct::core::kMaxThreads)}});
    }
    if (options->isa < OCTET_ISA_AUTO || options->isa > OCTET_ISA_AVX512) {
      return refuse(Rule::kIsa,
                    {{"got", std::to_string(options->isa)}, {"want", oct::cpu::available_isas()}});
    }
    cpu_options.threads = options->threads;
    cpu_options.isa = options->isa;
  }
  oct::cpu::Report cpu_report;
  if (Status s = oct::cpu::run(oct::core::expand(*plan, *args), cpu_options, &cpu_report);
      !s.ok()) {
    return s;
  }
  if (report != nullptr) {
    *report = octet_cpu_report{};
    report->struct_size = sizeof *report;
    report->isa = cpu_report.isa;
    report->threads = cpu_report.threads;
    report->scratch_bytes = cpu_report.scratch_bytes;
  }
  return {};
}

}  // namespace

extern "C" {

const char* octet_code_name(octet_code code) {
  switch (code) {
    case OCTET_OK: return "ok";
    case OCTET_INVALID_ARGUMENT: return "invalid argument";
    case OCTET_UNSUPPORTED: return "unsupported";
    case OCTET_NO_DEVICE: return "no device";
    case OCTET_NOT_PREPARED: return "not prepared";
    case OCTET_DEVICE_ERROR: return "device error";
    case OCTET_OUT_OF_MEMORY: return "out of memory";
    case OCTET_INTERNAL: return "internal fault";
    default: return "unknown code";
  }
}

const char* octet_status_message(void) { return message_buffer(); }

#define OCTET_TEXT_OF(x) #x
#define OCTET_TEXT(x) OCTET_TEXT_OF(x)
const char* octet_version(void) {
  return OCTET_TEXT(OCTET_VERSION_MAJOR) "." OCTET_TEXT(OCTET_VERSION_MINOR) "." OCTET_TEXT(
      OCTET_VERSION_PATCH);
}

void octet_gemm_problem_init(octet_gemm_problem* problem) {
  if (problem != nullptr) *problem = oct::core::default_problem();
}

octet_code octet_gemm_problem_parse(const char* text, octet_gemm_problem* problem) {
  return guarded([&]() -> Status {
    if (text == nullptr) return null("text", "a problem string");
    if (problem == nullptr) return null("problem", "an octet_gemm_problem");
    octet_gemm_problem parsed;
    if (Status s = oct::core::parse_problem(text, parsed); !s.ok()) return s;
    if (Status s = oct::core::check_problem(parsed); !s.ok()) return s;
    *problem = parsed;
    return {};
  });
}

octet_code octet_gemm_problem_print(const octet_gemm_problem* problem, char* text,
                                    size_t capacity) {
  return guarded([&]() -> Status {
    if (Status s = check_problem_pointer(problem); !s.ok()) return s;
    return copy_text(oct::core::to_string(*problem), text, capacity);
  });
}

int32_t octet_gemm_problem_equal(const octet_gemm_problem* x, const octet_gemm_problem* y) {
  return x != nullptr && y != nullptr && oct::core::equal(*x, *y) ? 1 : 0;
}

uint64_t octet_gemm_problem_hash(const octet_gemm_problem* problem) {
  return problem == nullptr ? 0 : oct::core::hash(*problem);
}

octet_code octet_device_preset(const char* name, octet_device_spec* device) {
  return guarded([&]() -> Status {
    if (name == nullptr) return null("name", "the name of a preset");
    if (device == nullptr) return null("device", "an octet_device_spec");
    return oct::plan::device_preset(name, *device);
  });
}

int32_t octet_device_preset_count(void) {
  return static_cast<int32_t>(oct::plan::device_presets().size());
}

const char* octet_device_preset_name(int32_t index) {
  if (index < 0 || index >= octet_device_preset_count()) return nullptr;
  return oct::plan::device_presets()[static_cast<size_t>(index)].name;
}

octet_code octet_supports(const octet_gemm_problem* problem, const octet_device_spec* device) {
  return guarded([&]() -> Status {
    if (problem == nullptr) return null("problem", "an octet_gemm_problem");
    if (device == nullptr) return null("device", "an octet_device_spec");
    return oct::plan::supports(*problem, *device);
  });
}

octet_code octet_plan_candidate(const octet_gemm_problem* problem, const octet_device_spec* device,
                                int32_t index, octet_gemm_plan* plan, int32_t* count) {
  return guarded([&]() -> Status {
    if (problem == nullptr) return null("problem", "an octet_gemm_problem");
    if (device == nullptr) return null("device", "an octet_device_spec");
    if (plan == nullptr) return null("plan", "an octet_gemm_plan");
    octet_gemm_plan made;
    int32_t all = 0;
    const Status s = oct::plan::plan_candidate(*problem, *device, index, made, all);
    if (count != nullptr) *count = all;
    if (!s.ok()) return s;
    *plan = made;
    return {};
  });
}

octet_code octet_gemm_plan_print(const octet_gemm_plan* plan, char* text, size_t capacity) {
  return guarded([&]() -> Status {
    if (plan == nullptr) return null("plan", "an octet_gemm_plan");
    if (Status s = oct::plan::check_plan(*plan); !s.ok()) return s;
    return copy_text(oct::plan::to_string(*plan), text, capacity);
  });
}

octet_code octet_gemm_plan_parse(const char* text, octet_gemm_plan* plan) {
  return guarded([&]() -> Status {
    if (text == nullptr) return null("text", "a plan string");
    if (plan == nullptr) return null("plan", "an octet_gemm_plan");
    octet_gemm_plan parsed;
    if (Status s = oct::plan::parse_plan(text, parsed); !s.ok()) return s;
    *plan = parsed;
    return {};
  });
}

int32_t octet_gemm_plan_equal(const octet_gemm_plan* x, const octet_gemm_plan* y) {
  return x != nullptr && y != nullptr && oct::plan::equal(*x, *y) ? 1 : 0;
}

void octet_gemm_args_init(octet_gemm_args* args) {
  if (args == nullptr) return;
  *args = octet_gemm_args{};
  args->struct_size = sizeof *args;
}

octet_code octet_check(const octet_gemm_plan* plan, const octet_gemm_args* args) {
  return guarded([&] { return check_call(plan, args); });
}

octet_code octet_validate(const octet_gemm_plan* plan, const octet_gemm_args* args) {
  return guarded([&]() -> Status {
    if (Status s = check_call(plan, args); !s.ok()) return s;
    return oct::core::validate(*plan, *args);
  });
}

const char* octet_isa_name(octet_isa isa) {
  switch (isa) {
    case OCTET_ISA_AUTO: return "auto";
    case OCTET_ISA_PORTABLE: return "portable";
    case OCTET_ISA_AVX2: return "avx2";
    case OCTET_ISA_AVX512: return "avx512";
    default: return "unknown";
  }
}

int32_t octet_isa_available(octet_isa isa) { return oct::cpu::isa_available(isa) ? 1 : 0; }

void octet_cpu_options_init(octet_cpu_options* options) {
  if (options == nullptr) return;
  *options = octet_cpu_options{};
  options->struct_size = sizeof *options;
}

octet_code octet_cpu_run(const octet_gemm_plan* plan, const octet_gemm_args* args,
                         const octet_cpu_options* options, octet_cpu_report* report) {
  return guarded([&] { return cpu_run(plan, args, options, report); });
}

octet_code octet_ref_run(const octet_gemm_plan* plan, const octet_gemm_args* args) {
  return guarded([&]() -> Status {
    if (Status s = check_call(plan, args); !s.ok()) return s;
    oct::ref::run(oct::core::expand(*plan, *args));
    return {};
  });
}

void octet_quantize_args_init(octet_quantize_args* args) {
  if (args == nullptr) return;
  *args = octet_quantize_args{};
  args->struct_size = sizeof *args;
  args->block = OCTET_BLOCK_1X128;
  args->axis = 1;
  args->x_type = OCTET_F32;
}

octet_code octet_cpu_quantize(const octet_quantize_args* args) {
  return guarded([&]() -> Status {
    if (Status s = check_quantize_call(args); !s.ok()) return s;
    oct::cpu::quantize(*args);
    return {};
  });
}

octet_code octet_ref_quantize(const octet_quantize_args* args) {
  return guarded([&]() -> Status {
    if (Status s = check_quantize_call(args); !s.ok()) return s;
    oct::ref::quantize(*args);
    return {};
  });
}

octet_code octet_cpu_dequantize(const octet_quantize_args* args) {
  return guarded([&]() -> Status {
    if (Status s = check_dequantize_call(args); !s.ok()) return s;
    oct::cpu::dequantize(*args);
    return {};
  });
}

octet_code octet_ref_dequantize(const octet_quantize_args* args) {
  return guarded([&]() -> Status {
    if (Status s = check_dequantize_call(args); !s.ok()) return s;
    oct::ref::dequantize(*args);
    return {};
  });
}

}  // extern "C"
