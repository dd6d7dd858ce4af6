// A device's GEMMs: kernels loaded, plans bound, launches. One Context serves any number of threads
// and streams; a process may have several, also of one device. It holds the device's primary
// context and works whatever context is current, which it leaves as it was.
//
// prepare() and bind() may allocate and call the driver at length; run() of a bound GEMM is one
// launch: it never allocates, compiles, loads, synchronises or reads the environment, and may be
// captured.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>

#include "core/status.h"
#include "cuda/driver.h"
#include "cuda/launch_params.h"
#include "cuda/plan_cache.h"
#include "octet/octet.h"
#include "plan/tuned_table.h"

namespace oct::cuda {

// A plan with its arguments, ready to launch: a value that owns nothing. Valid as long as the
// context that bound it.
struct BoundGemm {
  octet_gemm_plan plan{};
  Launch launch;
  Function function = nullptr;
};

class Context {
 public:
  // Refuses, in words, a machine without a usable driver or device.
  static Status create(int ordinal, std::unique_ptr<Context>& out);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const octet_device_spec& device_spec() const { return spec_; }
  const char* device_name() const { return name_; }  // as the driver gives it
  int driver_version() const { return driver_.version; }

  // Loads the kernels of the plans. Any thread, any number of times.
  Status prepare(std::span<const octet_gemm_plan> plans);
  // Loads a kernel by name.
  Status load(const char* kernel);

  // Checks the arguments and encodes the launch. OCTET_NOT_PREPARED if the kernel is not loaded.
  Status bind(const octet_gemm_plan& plan, const octet_gemm_args& args, BoundGemm& out) const;
  // The same plan and strides with other pointers: re-encodes only.
  Status rebind(BoundGemm& bound, const octet_gemm_args& args) const;
  Status run(const BoundGemm& bound, Stream stream) const;
  // bind() and run() in one.
  Status run(const octet_gemm_plan& plan, const octet_gemm_args& args, Stream stream) const;

  // For debugging: waits for `stream`, brings the grouping metadata to the host and names the first
  // value that a run would clamp.
  Status validate(const octet_gemm_plan& plan, const octet_gemm_args& args, Stream stream) const;

  // Gives gemm() measured choices, a copy of the table; null takes them away. Plans made before are
  // forgotten.
  void set_table(const plan::TunedTable* table);

  // Plans (from a bounded cache), prepares and runs. While `stream` is captured, a kernel that is
  // not loaded is refused with OCTET_NOT_PREPARED, and the capture stays intact.
  Status gemm(const octet_gemm_problem& problem, const octet_gemm_args& args, Stream stream);

 private:
  Context(const Driver& driver, Device device, ContextHandle handle)
      : driver_(driver), device_(device), handle_(handle) {}
  Status read_device();
  Status plan_cached(const octet_gemm_problem& problem, octet_gemm_plan& plan);
  // Null if the kernel is not loaded. Takes no lock.
  Function find(const char* kernel) const;

  const Driver& driver_;
  const Device device_;
  const ContextHandle handle_;
  octet_device_spec spec_{};
  char name_[128] = {};

  std::mutex loading_;
  std::unique_ptr<std::atomic<Function>[]> functions_;  // by row of the kernel table
  std::unique_ptr<Module[]> modules_;                   // guarded by loading_

  mutable std::shared_mutex plans_mutex_;
  PlanCache plans_;
  std::shared_ptr<const plan::TunedTable> table_;
};

int device_count();                                  // usable or not; 0 without a driver
Status driver_version(int& version);                 // 13000 is 13.0
Status device_name(int ordinal, std::string& name);  // as the driver gives it; usable or not
Status device_spec(int ordinal, octet_device_spec& out);

}  // namespace oct::cuda
