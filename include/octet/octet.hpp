// Octet for C++17 and newer: a thin header over the C interface (octet.h, which documents every
// field).
//
//   using namespace octet;
//   GemmProblem problem = GemmProblem::parse("dense_m4096n7168k2048").value();
//   GemmPlan plan = plan_gemm(problem, DeviceSpec::preset("cpu").value()).value();
//   GemmArgs args;
//   args.a = matrix(a, 4096, 2048);  // and b, d
//   args.sfa = column_major_scales(sfa, 4096);
//   args.sfb = row_major_scales(sfb, 16);
//   Status status = cpu::run(plan, args);
//
// Nothing here throws except value(), which throws octet::Error with the library's sentence.
#ifndef OCTET_OCTET_HPP_
#define OCTET_OCTET_HPP_

#if (defined(_MSVC_LANG) ? _MSVC_LANG : __cplusplus) < 201703L
#error \
    "octet/octet.hpp needs C++17 or newer: compile with -std=c++17 (octet/octet.h is for C and older C++)"
#endif

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "octet/octet.h"

namespace octet {

// Thrown by value().
class Error : public std::runtime_error {
 public:
  Error(octet_code code, const std::string& message) : std::runtime_error(message), code_(code) {}
  octet_code code() const noexcept { return code_; }

 private:
  octet_code code_;
};

// Success, or a code and one sentence that names the argument, what it got and what is wanted.
class [[nodiscard]] Status {
 public:
  Status() = default;
  // Takes the calling thread's message along when `code` is a failure.
  explicit Status(octet_code code) : code_(code) {
    if (code != OCTET_OK) message_ = octet_status_message();
  }
  bool ok() const noexcept { return code_ == OCTET_OK; }
  explicit operator bool() const noexcept { return ok(); }
  octet_code code() const noexcept { return code_; }
  const std::string& message() const noexcept { return message_; }
  // Throws Error unless ok.
  void value() const {
    if (!ok()) throw Error(code_, message_);
  }

 private:
  octet_code code_ = OCTET_OK;
  std::string message_;
};

// A value, or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(octet_code code, T value) : status_(code), value_(std::move(value)) {}
  bool ok() const noexcept { return status_.ok(); }
  explicit operator bool() const noexcept { return ok(); }
  const Status& status() const noexcept { return status_; }
  const std::string& message() const noexcept { return status_.message(); }
  // The value; throws Error unless ok.
  const T& value() const& {
    status_.value();
    return value_;
  }
  // By value, so that `for (... : plan_candidates(...).value())` does not outlive what it reads.
  T value() && {
    status_.value();
    return std::move(value_);
  }

 private:
  Status status_;
  T value_;
};

inline const char* version() { return octet_version(); }

namespace detail {
// The C interface reads up to a zero; a zero inside a string must not cut it to something that is
// well-formed. It becomes a character that stands in no name or grammar, and is refused as that.
inline std::string without_zeros(std::string text) {
  for (char& c : text) {
    if (c == '\0') c = '?';
  }
  return text;
}
}  // namespace detail

// What is to be computed. Fields as in octet_gemm_problem; starts as dense e4m3 1D2D with BF16 out.
struct GemmProblem : octet_gemm_problem {
  GemmProblem() : octet_gemm_problem{} { octet_gemm_problem_init(this); }

  // "dense_m4096n7168k2048": the grammar is in docs/problem-string.md.
  static Result<GemmProblem> parse(const std::string& text) {
    GemmProblem problem;
    const octet_code code = octet_gemm_problem_parse(detail::without_zeros(text).c_str(), &problem);
    return {code, problem};
  }
  // The problem string; throws Error if the fields break a rule.
  std::string to_string() const {
    char text[OCTET_TEXT_CAPACITY];
    Status(octet_gemm_problem_print(this, text, sizeof text)).value();
    return text;
  }
  friend bool operator==(const GemmProblem& x, const GemmProblem& y) {
    return octet_gemm_problem_equal(&x, &y) != 0;
  }
  friend bool operator!=(const GemmProblem& x, const GemmProblem& y) { return !(x == y); }
};

// Numbers of a device; presets h100_sxm, h100_pcie, h200, h800, h20, gh200 and cpu.
struct DeviceSpec : octet_device_spec {
  DeviceSpec() : octet_device_spec{} {}
  static Result<DeviceSpec> preset(const std::string& name) {
    DeviceSpec device;
    const octet_code code = octet_device_preset(detail::without_zeros(name).c_str(), &device);
    return {code, device};
  }
};

// How a problem is computed: a value that prints, parses back and compares.
struct GemmPlan : octet_gemm_plan {
  GemmPlan() : octet_gemm_plan{} {}
  static Result<GemmPlan> parse(const std::string& text) {
    GemmPlan plan;
    const octet_code code = octet_gemm_plan_parse(detail::without_zeros(text).c_str(), &plan);
    return {code, plan};
  }
  std::string to_string() const {
    char text[2 * OCTET_TEXT_CAPACITY];
    Status(octet_gemm_plan_print(this, text, sizeof text)).value();
    return text;
  }
  friend bool operator==(const GemmPlan& x, const GemmPlan& y) {
    return octet_gemm_plan_equal(&x, &y) != 0;
  }
  friend bool operator!=(const GemmPlan& x, const GemmPlan& y) { return !(x == y); }
};

// Whether the problem can be computed on the device, or the reason in words. Runs nothing.
inline Status supports(const GemmProblem& problem, const DeviceSpec& device) {
  return Status(octet_supports(&problem, &device));
}

inline Result<GemmPlan> plan_gemm(const GemmProblem& problem, const DeviceSpec& device) {
  GemmPlan plan;
  const octet_code code = octet_plan_gemm(&problem, &device, &plan);
  return {code, plan};
}

// Choices that were measured on a device, which planning asks first; see "tuned tables" in octet.h
// and docs/tuned-tables.md. Owned.
class TunedTable {
 public:
  static Result<TunedTable> parse(const std::string& text) {
    octet_tuned_table* handle = nullptr;
    const octet_code code = octet_tuned_table_create(detail::without_zeros(text).c_str(), &handle);
    TunedTable table;
    table.handle_.reset(handle);
    return {code, std::move(table)};
  }
  std::string to_string() const {
    std::size_t needed = 0;
    Status(octet_tuned_table_print(get(), nullptr, 0, &needed)).value();
    std::string text(needed, 0);
    Status(octet_tuned_table_print(get(), text.data(), needed, nullptr)).value();
    text.resize(needed - 1);
    return text;
  }
  // The plan's choice, measured to take plan.predicted_us.
  Status set(const GemmPlan& plan) { return Status(octet_tuned_table_set(handle_.get(), &plan)); }
  // Names the first choice that is passed over on the device.
  Status check(const DeviceSpec& device) const {
    return Status(octet_tuned_table_check(get(), &device));
  }
  const octet_tuned_table* get() const noexcept { return handle_.get(); }

 private:
  TunedTable() = default;
  struct Destroy {
    void operator()(octet_tuned_table* table) const noexcept { octet_tuned_table_destroy(table); }
  };
  std::unique_ptr<octet_tuned_table, Destroy> handle_;
};

inline Result<GemmPlan> plan_gemm(const GemmProblem& problem, const DeviceSpec& device,
                                  const TunedTable& table) {
  GemmPlan plan;
  const octet_code code = octet_plan_gemm_tuned(&problem, &device, table.get(), &plan);
  return {code, plan};
}

// The plans that plan_gemm() chooses from, cheapest prediction first, at most `most` of them.
inline Result<std::vector<GemmPlan>> plan_candidates(const GemmProblem& problem,
                                                     const DeviceSpec& device, std::int32_t most) {
  std::vector<GemmPlan> plans;
  std::int32_t count = 1;
  for (std::int32_t i = 0; i < most && i < count; ++i) {
    GemmPlan plan;
    const octet_code code = octet_plan_candidate(&problem, &device, i, &plan, &count);
    if (code != OCTET_OK) return {code, std::move(plans)};
    plans.push_back(plan);
  }
  return {OCTET_OK, std::move(plans)};
}

// The planner's reasons, for people; of the plan that a table gives, unless it is null.
inline Result<std::string> explain(const GemmProblem& problem, const DeviceSpec& device,
                                   const TunedTable* table = nullptr) {
  const octet_tuned_table* const handle = table == nullptr ? nullptr : table->get();
  std::string text;
  std::size_t needed = 0;
  octet_code code = octet_plan_explain_tuned(&problem, &device, handle, nullptr, 0, &needed);
  if (code == OCTET_OK) {
    text.resize(needed);
    code = octet_plan_explain_tuned(&problem, &device, handle, text.data(), text.size(), nullptr);
    text.resize(needed - 1);
  }
  return {code, std::move(text)};
}

// A row-major matrix of `rows` x `cols` elements, rows `ld` apart, groups `group_stride`.
inline octet_matrix matrix(const void* data, std::int64_t rows, std::int64_t cols, std::int64_t ld,
                           std::int64_t group_stride = 0) {
  return {const_cast<void*>(data), rows, cols, ld, group_stride};
}
// Rows one after the other.
inline octet_matrix matrix(const void* data, std::int64_t rows, std::int64_t cols) {
  return matrix(data, rows, cols, cols);
}

// Scales with rows next to each other: element (r, kb) at data[r + kb * pitch].
inline octet_scale_matrix column_major_scales(const float* data, std::int64_t pitch,
                                              std::int64_t group_stride = 0) {
  return {data, 1, pitch, group_stride};
}

// Scales with K-blocks next to each other: element (r, kb) at data[r * pitch + kb].
inline octet_scale_matrix row_major_scales(const float* data, std::int64_t pitch,
                                           std::int64_t group_stride = 0) {
  return {data, pitch, 1, group_stride};
}

constexpr std::int64_t ceil_div(std::int64_t x, std::int64_t y) { return (x + y - 1) / y; }
// K-blocks of 128: the number of scale columns.
constexpr std::int64_t k_blocks(std::int64_t k) { return ceil_div(k, 128); }

// Pointers of one call; fields as in octet_gemm_args.
struct GemmArgs : octet_gemm_args {
  GemmArgs() : octet_gemm_args{} { octet_gemm_args_init(this); }
};

// Every rule about pointers, alignment, strides and overlap; reads no operand.
inline Status check(const GemmPlan& plan, const GemmArgs& args) {
  return Status(octet_check(&plan, &args));
}

// Host memory: names the first grouping value that a run would clamp, or scale that is not finite.
inline Status validate(const GemmPlan& plan, const GemmArgs& args) {
  return Status(octet_validate(&plan, &args));
}

// What to quantise and how; fields as in octet_quantize_args.
// block is OCTET_BLOCK_1X128 (activations) until it is set: say OCTET_BLOCK_128X128 for weights.
struct QuantizeArgs : octet_quantize_args {
  QuantizeArgs() : octet_quantize_args{} { octet_quantize_args_init(this); }
};

namespace cpu {

struct Options : octet_cpu_options {
  Options() : octet_cpu_options{} { octet_cpu_options_init(this); }
};

// D = A * B^T on the processor, the bits of the tensor cores. threads: 0 for all.
inline Status run(const GemmPlan& plan, const GemmArgs& args, std::int32_t threads = 0) {
  Options options;
  options.threads = threads;
  return Status(octet_cpu_run(&plan, &args, &options, nullptr));
}

// The same, and what was used.
inline Result<octet_cpu_report> run(const GemmPlan& plan, const GemmArgs& args,
                                    const Options& options) {
  octet_cpu_report report{};
  const octet_code code = octet_cpu_run(&plan, &args, &options, &report);
  return {code, report};
}

inline Status quantize(const QuantizeArgs& args) { return Status(octet_cpu_quantize(&args)); }
inline Status dequantize(const QuantizeArgs& args) { return Status(octet_cpu_dequantize(&args)); }

}  // namespace cpu

// The normative loops: short, slow, the law.
namespace ref {

inline Status run(const GemmPlan& plan, const GemmArgs& args) {
  return Status(octet_ref_run(&plan, &args));
}
inline Status quantize(const QuantizeArgs& args) { return Status(octet_ref_quantize(&args)); }
inline Status dequantize(const QuantizeArgs& args) { return Status(octet_ref_dequantize(&args)); }

}  // namespace ref

// NVIDIA Hopper; only the driver is needed. Pointers in GemmArgs are device memory, a stream is a
// cudaStream_t (null: the legacy default stream). See "CUDA" in octet.h for what may be captured.
namespace cuda {

inline std::int32_t device_count() { return octet_cuda_device_count(); }

// CUDA's version that the driver is for, 13000 for 13.0; or why there is no driver to use.
inline Result<std::int32_t> driver_version() {
  std::int32_t version = 0;
  const octet_code code = octet_cuda_driver_version(&version);
  return {code, version};
}

// What the driver calls a device, usable or not: "NVIDIA H200".
inline Result<std::string> device_name(std::int32_t ordinal) {
  char text[OCTET_TEXT_CAPACITY] = "";
  const octet_code code = octet_cuda_device_name(ordinal, text, sizeof text);
  return {code, text};
}

// The device as the planner sees it, or why it cannot be used.
inline Result<DeviceSpec> device_spec(std::int32_t ordinal) {
  DeviceSpec device;
  const octet_code code = octet_cuda_device_spec(ordinal, &device);
  return {code, device};
}

// A plan with its arguments, ready to launch; owned. Must not outlive the context that bound it.
class BoundGemm {
 public:
  BoundGemm() = default;
  const octet_cuda_bound* get() const noexcept { return handle_.get(); }

 private:
  friend class Context;
  struct Destroy {
    void operator()(octet_cuda_bound* bound) const noexcept { octet_cuda_bound_destroy(bound); }
  };
  std::unique_ptr<octet_cuda_bound, Destroy> handle_;
};

// Kernels and cached plans of one device; for any number of threads and streams at once.
class Context {
 public:
  static Result<Context> create(std::int32_t ordinal = 0) {
    Context context;
    octet_cuda_context* handle = nullptr;
    const octet_code code = octet_cuda_context_create(ordinal, &handle);
    context.handle_.reset(handle);
    return {code, std::move(context)};
  }

  Result<DeviceSpec> device() const {
    DeviceSpec device;
    const octet_code code = octet_cuda_context_device(handle_.get(), &device);
    return {code, device};
  }
  // Measured choices for gemm(), of which the context keeps a copy; null takes them away.
  Status set_table(const TunedTable* table) {
    return Status(
        octet_cuda_context_set_table(handle_.get(), table == nullptr ? nullptr : table->get()));
  }
  // Loads the kernel of a plan, or of `count` plans; a few milliseconds each the first time.
  Status prepare(const GemmPlan& plan) { return prepare(&plan, 1); }
  Status prepare(const octet_gemm_plan* plans, std::int32_t count) {
    return Status(octet_cuda_prepare(handle_.get(), plans, count));
  }
  // Checks the arguments and encodes the launch once; the plan must be prepared.
  Result<BoundGemm> bind(const GemmPlan& plan, const GemmArgs& args) {
    BoundGemm bound;
    octet_cuda_bound* handle = nullptr;
    const octet_code code = octet_cuda_bind(handle_.get(), &plan, &args, &handle);
    bound.handle_.reset(handle);
    return {code, std::move(bound)};
  }
  // Other pointers or strides for the same plan; not while another thread runs the same object.
  Status rebind(BoundGemm& bound, const GemmArgs& args) {
    return Status(octet_cuda_rebind(handle_.get(), bound.handle_.get(), &args));
  }
  // One launch: never allocates, loads or synchronises, and may be captured.
  Status run(const BoundGemm& bound, void* stream = nullptr) const {
    return Status(octet_cuda_run_bound(handle_.get(), bound.get(), stream));
  }
  // Bind and run in one call; the plan must be prepared.
  Status run(const GemmPlan& plan, const GemmArgs& args, void* stream = nullptr) const {
    return Status(octet_cuda_run(handle_.get(), &plan, &args, stream));
  }
  // Plan (from a bounded cache), prepare if need be, run.
  Status gemm(const GemmProblem& problem, const GemmArgs& args, void* stream = nullptr) {
    return Status(octet_cuda_gemm(handle_.get(), &problem, &args, stream));
  }
  // For debugging: waits for `stream` and names the first value of the grouping metadata in device
  // memory that a run would have to clamp.
  Status validate(const GemmPlan& plan, const GemmArgs& args, void* stream = nullptr) const {
    return Status(octet_cuda_validate(handle_.get(), &plan, &args, stream));
  }
  octet_cuda_context* get() const noexcept { return handle_.get(); }

 private:
  Context() = default;
  struct Destroy {
    void operator()(octet_cuda_context* context) const noexcept {
      octet_cuda_context_destroy(context);
    }
  };
  std::unique_ptr<octet_cuda_context, Destroy> handle_;
};

}  // namespace cuda
}  // namespace octet

template <>
struct std::hash<octet::GemmProblem> {
  std::size_t operator()(const octet::GemmProblem& problem) const noexcept {
    return static_cast<std::size_t>(octet_gemm_problem_hash(&problem));
  }
};

#endif  // OCTET_OCTET_HPP_
