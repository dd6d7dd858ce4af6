// The CUDA part of the C interface; see octet.cpp.
#include <memory>
#include <span>

#include "capi/guard.h"
#include "capi/tuned_table.h"
#include "core/refusals.h"
#include "cuda/context.h"
#include "loader/cubins.h"
#include "octet/octet.h"

struct octet_cuda_context {
  std::unique_ptr<oct::cuda::Context> context;
};

struct octet_cuda_bound {
  oct::cuda::BoundGemm gemm;
};

namespace {

using oct::Status;
using oct::capi::copy_text;
using oct::capi::guarded;
using oct::capi::guarded_launch;
using oct::capi::null;
using oct::capi::table_of;
using oct::core::refuse;
using oct::core::Rule;

constexpr const char* kContext = "an octet_cuda_context";

oct::cuda::Stream to_stream(void* stream) { return static_cast<oct::cuda::Stream>(stream); }

}  // namespace

extern "C" {

int32_t octet_cuda_device_count(void) {
  int32_t count = 0;
  // Why there is none, octet_cuda_driver_version() and the others say.
  static_cast<void>(guarded([&]() -> Status {
    count = oct::cuda::device_count();
    return {};
  }));
  return count;
}

octet_code octet_cuda_driver_version(int32_t* version) {
  return guarded([&]() -> Status {
    if (version == nullptr) return null("version", "an int32_t");
    int found = 0;
    if (Status s = oct::cuda::driver_version(found); !s.ok()) return s;
    *version = found;
    return {};
  });
}

octet_code octet_cuda_device_name(int32_t ordinal, char* text, size_t capacity) {
  return guarded([&]() -> Status {
    std::string name;
    if (Status s = oct::cuda::device_name(ordinal, name); !s.ok()) return s;
    return copy_text(name, text, capacity);
  });
}

octet_code octet_cuda_device_spec(int32_t ordinal, octet_device_spec* device) {
  return guarded([&]() -> Status {
    if (device == nullptr) return null("device", "an octet_device_spec");
    octet_device_spec spec{};
    if (Status s = oct::cuda::device_spec(ordinal, spec); !s.ok()) return s;
    *device = spec;
    return {};
  });
}

int32_t octet_cuda_kernel_count(void) { return static_cast<int32_t>(oct::loader::cubins().size()); }

const char* octet_cuda_kernel_name(int32_t index) {
  if (index < 0 || index >= octet_cuda_kernel_count()) return nullptr;
  return oct::loader::cubins()[static_cast<size_t>(index)].name;
}

octet_code octet_cuda_context_create(int32_t ordinal, octet_cuda_context** context) {
  return guarded([&]() -> Status {
    if (context == nullptr) return null("context", "room for an octet_cuda_context*");
    auto made = std::make_unique<octet_cuda_context>();
    if (Status s = oct::cuda::Context::create(ordinal, made->context); !s.ok()) return s;
    *context = made.release();
    return {};
  });
}

void octet_cuda_context_destroy(octet_cuda_context* context) { delete context; }

octet_code octet_cuda_context_device(const octet_cuda_context* context, octet_device_spec* device) {
  return guarded([&]() -> Status {
    if (context == nullptr) return null("context", kContext);
    if (device == nullptr) return null("device", "an octet_device_spec");
    *device = context->context->device_spec();
    return {};
  });
}

octet_code octet_cuda_context_set_table(octet_cuda_context* context,
                                        const octet_tuned_table* table) {
  return guarded([&]() -> Status {
    if (context == nullptr) return null("context", kContext);
    context->context->set_table(table_of(table));
    return {};
  });
}

octet_code octet_cuda_prepare(octet_cuda_context* context, const octet_gemm_plan* plans,
                              int32_t count) {
  return guarded([&]() -> Status {
    if (context == nullptr) return null("context", kContext);
    if (count < 0)
      return refuse(Rule::kNegative, {{"arg", "count"}, {"got", std::to_string(count)}});
    if (plans == nullptr && count > 0) return null("plans", "octet_gemm_plan[count]");
    return context->context->prepare({plans, static_cast<size_t>(count)});
  });
}

octet_code octet_cuda_bind(octet_cuda_context* context, const octet_gemm_plan* plan,
                           const octet_gemm_args* args, octet_cuda_bound** bound) {
  return guarded_launch([&]() -> Status {
    if (context == nullptr) return null("context", kContext);
    if (plan == nullptr) return null("plan", "an octet_gemm_plan");
    if (args == nullptr) return null("args", "an octet_gemm_args");
    if (bound == nullptr) return null("bound", "room for an octet_cuda_bound*");
    auto made = std::make_unique<octet_cuda_bound>();
    if (Status s = context->context->bind(*plan, *args, made->gemm); !s.ok()) return s;
    *bound = made.release();
    return {};
  });
}

octet_code octet_cuda_rebind(octet_cuda_context* context, octet_cuda_bound* bound,
                             const octet_gemm_args* args) {
  return guarded_launch([&]() -> Status {
    if (context == nullptr) return null("context", kContext);
    if (bound == nullptr) return null("bound", "an octet_cuda_bound");
    if (args == nullptr) return null("args", "an octet_gemm_args");
    return context->context->rebind(bound->gemm, *args);
  });
}

void octet_cuda_bound_destroy(octet_cuda_bound* bound) { delete bound; }

octet_code octet_cuda_run_bound(const octet_cuda_context* context, const octet_cuda_bound* bound,
                                void* stream) {
  return guarded_launch([&]() -> Status {
    if (context == nullptr) return null("context", kContext);
    if (bound == nullptr) return null("bound", "an octet_cuda_bound");
    return context->context->run(bound->gemm, to_stream(stream));
  });
}

octet_code octet_cuda_run(const octet_cuda_context* context, const octet_gemm_plan* plan,
                          const octet_gemm_args* args, void* stream) {
  return guarded_launch([&]() -> Status {
    if (context == nullptr) return null("context", kContext);
    if (plan == nullptr) return null("plan", "an octet_gemm_plan");
    if (args == nullptr) return null("args", "an octet_gemm_args");
    return context->context->run(*plan, *args, to_stream(stream));
  });
}

octet_code octet_cuda_gemm(octet_cuda_context* context, const octet_gemm_problem* problem,
                           const octet_gemm_args* args, void* stream) {
  return guarded_launch([&]() -> Status {
    if (context == nullptr) return null("context", kContext);
    if (problem == nullptr) return null("problem", "an octet_gemm_problem");
    if (args == nullptr) return null("args", "an octet_gemm_args");
    return context->context->gemm(*problem, *args, to_stream(stream));
  });
}

octet_code octet_cuda_validate(const octet_cuda_context* context, const octet_gemm_plan* plan,
                               const octet_gemm_args* args, void* stream) {
  return guarded([&]() -> Status {
    if (context == nullptr) return null("context", kContext);
    if (plan == nullptr) return null("plan", "an octet_gemm_plan");
    if (args == nullptr) return null("args", "an octet_gemm_args");
    return context->context->validate(*plan, *args, to_stream(stream));
  });
}

}  // extern "C"
