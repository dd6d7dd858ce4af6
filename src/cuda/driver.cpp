// See driver.h.
#include "cuda/driver.h"

#include <dlfcn.h>

#include <mutex>
#include <string>

#include "core/refusals.h"
#include "loader/cubins.h"

namespace oct::cuda {

using core::refuse;
using core::Rule;

namespace {

// Written into the build beside the cubins: the driver must be at least as new as their toolkit's
// major version (minor-version compatibility within it).
#ifndef OCTET_CUBIN_TOOLKIT
#define OCTET_CUBIN_TOOLKIT 12080
#endif
constexpr int kOldestDriver =
    OCTET_CUBIN_TOOLKIT / 1000 * 1000 < 12000 ? 12000 : OCTET_CUBIN_TOOLKIT / 1000 * 1000;

using GetProcAddress = Result (*)(const char*, void**, int, uint64_t, int*);

struct Symbol {
  const char* name;
  int since;  // the version of the function's interface that this file was written for
  void* where;
  bool optional;
};

Status load(void* library, Driver& d) {
  void* entry = dlsym(library, "cuGetProcAddress_v2");
  if (entry == nullptr) {
    return refuse(Rule::kDriverWithout, {{"want", "cuGetProcAddress_v2 (CUDA 12.0)"}});
  }
  const auto get = reinterpret_cast<GetProcAddress>(entry);
  const Symbol symbols[] = {
      {"cuInit", 2000, &d.init, false},
      {"cuDriverGetVersion", 2020, &d.driver_version, false},
      {"cuDeviceGetCount", 2000, &d.device_count, false},
      {"cuDeviceGet", 2000, &d.device_get, false},
      {"cuDeviceGetName", 2000, &d.device_name, false},
      {"cuDeviceGetAttribute", 2000, &d.device_attribute, false},
      {"cuDevicePrimaryCtxRetain", 7000, &d.primary_retain, false},
      {"cuDevicePrimaryCtxRelease", 11000, &d.primary_release, false},
      {"cuCtxGetCurrent", 4000, &d.context_current, false},
      {"cuCtxPushCurrent", 4000, &d.context_push, false},
      {"cuCtxPopCurrent", 4000, &d.context_pop, false},
      {"cuModuleLoadData", 2000, &d.module_load, false},
      {"cuModuleUnload", 2000, &d.module_unload, false},
      {"cuModuleGetFunction", 2000, &d.module_function, false},
      {"cuMemcpyDtoHAsync", 3020, &d.copy_to_host, false},
      {"cuStreamSynchronize", 2000, &d.stream_wait, false},
      {"cuFuncSetAttribute", 9000, &d.function_set, false},
      {"cuFuncLoad", 12040, &d.function_load, true},
      {"cuLaunchKernelEx", 11060, &d.launch, false},
      {"cuTensorMapEncodeTiled", 12000, &d.encode_tiled, false},
      {"cuOccupancyMaxActiveClusters", 11070, &d.max_active_clusters, false},
      {"cuStreamIsCapturing", 10000, &d.stream_capturing, false},
      {"cuGetErrorName", 6000, &d.error_name, false},
      {"cuGetErrorString", 6000, &d.error_string, false},
  };
  for (const Symbol& symbol : symbols) {
    void* address = nullptr;
    int found = 0;
    const Result r = get(symbol.name, &address, symbol.since, 0, &found);
    if ((r != 0 || address == nullptr) && !symbol.optional) {
      return refuse(Rule::kDriverWithout, {{"want", symbol.name}});
    }
    *static_cast<void**>(symbol.where) = r == 0 ? address : nullptr;
  }
  if (const Result r = d.init(0); r != 0) {
    const char* name = "unknown";
    d.error_name(r, &name);
    return refuse(Rule::kDriverStart, {{"got", name == nullptr ? "unknown" : name}});
  }
  if (const Result r = d.driver_version(&d.version); r != 0) return d.fail("driver version", r);
  if (d.version < kOldestDriver) {
    return refuse(Rule::kDriverVersion,
                  {{"got", core::text(d.version / 1000) + "." + core::text(d.version % 1000 / 10)},
                   {"want", core::text(kOldestDriver / 1000) + ".0"}});
  }
  return {};
}

}  // namespace

Status Driver::fail(const char* doing, Result result) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (error_name(result, &name) != 0 || name == nullptr) name = "unknown error";
  if (error_string(result, &text) != 0 || text == nullptr) text = "";
  constexpr Result kOutOfMemory = 2;
  return refuse(result == kOutOfMemory ? Rule::kDriverOutOfMemory : Rule::kDriverError,
                {{"doing", doing}, {"got", std::string(name) + " (" + text + ")"}});
}

Status driver(const Driver*& out) {
  // NOTE: not std::call_once(). An exception would pass through the C library's pthread_once(), and
  // this library carries its own unwinder, which cannot: the process would be aborted.
  static std::mutex mutex;
  static bool known = false;
  static Driver instance{};
  static Status status;
  const std::lock_guard lock(mutex);
  out = nullptr;
  if (!known) {
    // Never unloaded: the driver does not survive it. A failure is not kept: where memory is short
    // nothing is found either.
    void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return refuse(Rule::kNoDriver, {});
    status = load(library, instance);
    known = true;
  }
  out = status.ok() ? &instance : nullptr;
  return status;
}

Current::Current(const Driver& driver, ContextHandle context) : driver_(driver) {
  ContextHandle now = nullptr;
  if (driver_.context_current(&now) == 0 && now == context) return;
  result_ = driver_.context_push(context);
  pushed_ = result_ == 0;
}

Current::~Current() {
  ContextHandle popped = nullptr;
  if (pushed_) static_cast<void>(driver_.context_pop(&popped));
}

}  // namespace oct::cuda
