// See context.h.
#include "cuda/context.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/check.h"
#include "core/float_types.h"
#include "core/problem.h"
#include "core/refusals.h"
#include "kernel_abi/kernel_table.h"
#include "kernel_abi/smem_layout.h"
#include "loader/cubins.h"
#include "plan/candidates.h"
#include "plan/device_presets.h"
#include "plan/planner.h"

namespace oct::cuda {
namespace {

using core::refuse;
using core::Rule;

template <std::size_t kRoom>
std::string_view bounded(const char (&name)[kRoom]) {
  return {name, strnlen(name, kRoom)};
}

// The preset that the driver's name of a device means, for the figures no driver tells.
const char* preset_of(std::string_view name) {
  const auto has = [&](std::string_view word) { return name.find(word) != std::string_view::npos; };
  if (has("GH200")) return "gh200";
  if (has("H200")) return "h200";
  if (has("H800")) return "h800";
  if (has("H20")) return "h20";
  if (has("PCIe")) return "h100_pcie";
  return "h100_sxm";
}

Status find_device(int ordinal, const Driver*& d, Device& device) {
  if (Status s = driver(d); !s.ok()) return s;
  int count = 0;
  if (const Result r = d->device_count(&count); r != 0) return d->fail("count of devices", r);
  if (ordinal < 0 || ordinal >= count) {
    return refuse(Rule::kDeviceOrdinal,
                  {{"got", core::text(ordinal)}, {"want", core::text(count)}});
  }
  if (const Result r = d->device_get(&device, ordinal); r != 0) return d->fail("device", r);
  return {};
}

}  // namespace

int device_count() {
  const Driver* driver = nullptr;
  int count = 0;
  if (!cuda::driver(driver).ok() || driver->device_count(&count) != 0) return 0;
  return count;
}

Status driver_version(int& version) {
  const Driver* d = nullptr;
  if (Status s = driver(d); !s.ok()) return s;
  version = d->version;
  return {};
}

Status device_name(int ordinal, std::string& name) {
  const Driver* d = nullptr;
  Device device = 0;
  if (Status s = find_device(ordinal, d, device); !s.ok()) return s;
  char text[128] = {};
  if (const Result r = d->device_name(text, sizeof text - 1, device); r != 0) {
    return d->fail("name of a device", r);
  }
  name = text;
  return {};
}

Status device_spec(int ordinal, octet_device_spec& out) {
  std::unique_ptr<Context> context;
  if (Status s = Context::create(ordinal, context); !s.ok()) return s;
  out = context->device_spec();
  return {};
}

Status Context::create(int ordinal, std::unique_ptr<Context>& out) {
  const Driver* d = nullptr;
  Device device = 0;
  if (Status s = find_device(ordinal, d, device); !s.ok()) return s;
  int major = 0, minor = 0;
  char name[128] = {};
  d->device_attribute(&major, DeviceAttribute::kMajor, device);
  d->device_attribute(&minor, DeviceAttribute::kMinor, device);
  d->device_name(name, sizeof name - 1, device);
  if (major != 9 || minor != 0) {
    return refuse(Rule::kDeviceNotHopper, {{"device", core::text(ordinal)},
                                           {"name", name},
                                           {"got", core::text(major) + "." + core::text(minor)}});
  }
  if (loader::cubins().empty()) {
    return refuse(Rule::kBuildWithoutKernels, {{"got", OCTET_WHY_NO_KERNELS}});
  }
  ContextHandle handle = nullptr;
  if (const Result r = d->primary_retain(&handle, device); r != 0) {
    return d->fail("primary context", r);
  }
  std::unique_ptr<Context> context(new Context(*d, device, handle));
  context->functions_ = std::make_unique<std::atomic<Function>[]>(abi::kKernelCount);
  context->modules_ = std::make_unique<Module[]>(abi::kKernelCount);
  if (Status s = context->read_device(); !s.ok()) return s;
  out = std::move(context);
  return {};
}

Context::~Context() {
  {
    const Current current(driver_, handle_);
    for (int i = 0; modules_ && i < abi::kKernelCount; ++i) {
      if (modules_[i] != nullptr) static_cast<void>(driver_.module_unload(modules_[i]));
    }
  }
  static_cast<void>(driver_.primary_release(device_));
}

Status Context::read_device() {
  driver_.device_name(name_, sizeof name_ - 1, device_);
  if (Status s = plan::device_preset(preset_of(name_), spec_); !s.ok()) return s;
  const auto read = [&](DeviceAttribute attribute, int64_t fallback) {
    int value = 0;
    const Result r = driver_.device_attribute(&value, attribute, device_);
    return r == 0 && value > 0 ? int64_t{value} : fallback;
  };
  const int32_t sms = static_cast<int32_t>(read(DeviceAttribute::kSms, spec_.sms));
  if (sms != spec_.sms) {
    // A part of the preset's device: MIG, or a variant with other SMs.
    for (int32_t& clusters : spec_.active_clusters) clusters = clusters * sms / spec_.sms;
    spec_.fp8_flops_per_second *= static_cast<double>(sms) / spec_.sms;
    spec_.bf16_flops_per_second *= static_cast<double>(sms) / spec_.sms;
    spec_.sms = sms;
  }
  spec_.l2_bytes = read(DeviceAttribute::kL2Bytes, spec_.l2_bytes);
  spec_.shared_memory_bytes = read(DeviceAttribute::kSharedMemoryOptin, spec_.shared_memory_bytes);
  return {};
}

Function Context::find(const char* kernel) const {
  const int row = plan::kernel_index(kernel);
  return row < 0 ? nullptr : functions_[row].load(std::memory_order_acquire);
}

Status Context::load(const char* kernel) {
  const int row = plan::kernel_index(kernel);
  const loader::Cubin* cubin = row < 0 ? nullptr : loader::find_cubin(kernel);
  if (cubin == nullptr) return refuse(Rule::kGpuKernel, {{"got", kernel}});
  if (functions_[row].load(std::memory_order_acquire) != nullptr) return {};
  const std::lock_guard lock(loading_);
  if (functions_[row].load(std::memory_order_relaxed) != nullptr) return {};
  const Current current(driver_, handle_);
  if (current.result() != 0) return driver_.fail("current context", current.result());
  Module module = nullptr;
  if (const Result r = driver_.module_load(&module, cubin->begin); r != 0) {
    return driver_.fail(("loading kernel " + std::string(kernel)).c_str(), r);
  }
  Function function = nullptr;
  // Profilers show this name.
  Result r =
      driver_.module_function(&function, module, ("octet_gemm_" + std::string(kernel)).c_str());
  const abi::TileConfig tile = abi::parse_kernel(kernel);
  int most = 0;
  for (int split = 1; split <= plan::kLargestCluster; ++split) {
    most = std::max(most, abi::make_smem_layout(tile, split).total);
  }
  most = std::min(most, abi::kMostSharedMemory);
  if (r == 0) r = driver_.function_set(function, FunctionAttribute::kDynamicSharedBytes, most);
  if (r == 0) r = driver_.function_set(function, FunctionAttribute::kNonPortableCluster, 1);
  // NOTE: drivers load lazily; without this the first launch would load, which a capture forbids.
  if (r == 0 && driver_.function_load != nullptr) r = driver_.function_load(function);
  if (r != 0) {
    static_cast<void>(driver_.module_unload(module));
    return driver_.fail(("preparing kernel " + std::string(kernel)).c_str(), r);
  }
  modules_[row] = module;
  functions_[row].store(function, std::memory_order_release);
  return {};
}

Status Context::prepare(std::span<const octet_gemm_plan> plans) {
  for (const octet_gemm_plan& plan : plans) {
    // A plan that no planner made may lack its terminating zero.
    const std::string kernel(bounded(plan.kernel));
    if (Status s = load(kernel.c_str()); !s.ok()) return s;
  }
  return {};
}

Status Context::bind(const octet_gemm_plan& plan, const octet_gemm_args& args,
                     BoundGemm& out) const {
  if (Status s = core::check_args(plan, args); !s.ok()) return s;
  if (plan::kernel_index(bounded(plan.kernel)) < 0) {
    return refuse(Rule::kGpuKernel, {{"got", std::string(bounded(plan.kernel))}});
  }
  if (Status s = plan::serves(abi::parse_kernel(plan.kernel), plan.problem, spec_, plan.split);
      !s.ok()) {
    return s;
  }
  out.function = find(plan.kernel);
  if (out.function == nullptr) {
    return refuse(Rule::kNotPrepared, {{"got", plan.kernel}});
  }
  out.plan = plan;
  const Current current(driver_, handle_);  // tensor maps are encoded in a context
  if (current.result() != 0) return driver_.fail("current context", current.result());
  return make_launch(driver_, plan, args, out.launch);
}

Status Context::rebind(BoundGemm& bound, const octet_gemm_args& args) const {
  if (Status s = core::check_args(bound.plan, args); !s.ok()) return s;
  const Current current(driver_, handle_);
  if (current.result() != 0) return driver_.fail("current context", current.result());
  return make_launch(driver_, bound.plan, args, bound.launch);
}

Status Context::run(const BoundGemm& bound, Stream stream) const {
  const Launch& launch = bound.launch;
  if (launch.grid == 0) return {};
  LaunchAttribute attributes[2];
  uint32_t count = 0;
  if (launch.cluster > 1) {
    LaunchAttribute& a = attributes[count++];
    a.id = kAttributeCluster;
    a.pad = 0;
    a.value.cluster = {launch.cluster, 1, 1};
  }
  if (launch.dependent) {
    LaunchAttribute& a = attributes[count++];
    a.id = kAttributeProgrammaticSerialization;
    a.pad = 0;
    a.value.programmatic_serialization = 1;
  }
  // Clusters along y, their CTAs along x: a kernel reads both without a division.
  const LaunchConfig config{launch.cluster,
                            launch.grid / launch.cluster,
                            1,
                            launch.threads,
                            1,
                            1,
                            launch.shared_bytes,
                            stream,
                            attributes,
                            count};
  void* parameters[] = {const_cast<abi::KernelParams*>(&launch.params)};
  const Current current(driver_, handle_);
  if (current.result() != 0) return driver_.fail("current context", current.result());
  const Result r = driver_.launch(&config, bound.function, parameters, nullptr);
  return r == 0 ? Status{} : driver_.fail("launch", r);
}

Status Context::run(const octet_gemm_plan& plan, const octet_gemm_args& args, Stream stream) const {
  BoundGemm bound;
  if (Status s = bind(plan, args, bound); !s.ok()) return s;
  return run(bound, stream);
}

Status Context::validate(const octet_gemm_plan& plan, const octet_gemm_args& args,
                         Stream stream) const {
  if (Status s = core::check_args(plan, args); !s.ok()) return s;
  const octet_gemm_problem& p = plan.problem;
  const Current current(driver_, handle_);
  if (current.result() != 0) return driver_.fail("current context", current.result());
  int capturing = 0;
  if (driver_.stream_capturing(stream, &capturing) == 0 && capturing != 0) {
    return refuse(Rule::kValidateCapture, {});
  }
  octet_gemm_args host = args;
  std::vector<std::vector<char>> arrays;
  Result r = 0;
  const auto bring = [&](const void*& array, int64_t count, octet_type type) {
    if (array == nullptr || count <= 0 || r != 0) return;
    std::vector<char>& copy = arrays.emplace_back(static_cast<std::size_t>(count) *
                                                  static_cast<std::size_t>(core::size_of(type)));
    r = driver_.copy_to_host(copy.data(), reinterpret_cast<uintptr_t>(array), copy.size(), stream);
    array = copy.data();
  };
  const bool over_k = p.grouping == OCTET_K_GROUPED;
  if (p.grouping == OCTET_CONTIGUOUS) bring(host.group_index, args.a.rows, OCTET_I32);
  if (p.grouping == OCTET_OFFSETS) bring(host.group_offsets, p.groups + 1, p.index_type);
  if (over_k && !p.packed) bring(host.group_offsets, p.groups, p.index_type);
  if (p.grouping == OCTET_ALIGNED) bring(host.group_ends, p.groups, OCTET_I32);
  if (p.grouping == OCTET_MASKED) bring(host.group_counts, p.groups, OCTET_I32);
  if (over_k) bring(host.group_counts, p.groups, p.index_type);
  if (r == 0) r = driver_.stream_wait(stream);
  if (r != 0) return driver_.fail("copy of grouping metadata", r);
  return core::validate_metadata(p, host);
}

void Context::set_table(const plan::TunedTable* table) {
  auto copy = table == nullptr ? nullptr : std::make_shared<const plan::TunedTable>(*table);
  const std::unique_lock lock(plans_mutex_);
  table_ = std::move(copy);
  plans_.clear();
}

Status Context::plan_cached(const octet_gemm_problem& problem, octet_gemm_plan& plan) {
  std::shared_ptr<const plan::TunedTable> table;
  {
    const std::shared_lock lock(plans_mutex_);
    if (const octet_gemm_plan* known = plans_.find(problem)) {
      plan = *known;
      return {};
    }
    table = table_;
  }
  if (Status s = plan::plan_gemm(problem, spec_, table.get(), plan); !s.ok()) return s;
  const std::unique_lock lock(plans_mutex_);
  if (table == table_) plans_.keep(plan);
  return {};
}

Status Context::gemm(const octet_gemm_problem& problem, const octet_gemm_args& args,
                     Stream stream) {
  octet_gemm_plan plan{};
  if (Status s = plan_cached(problem, plan); !s.ok()) return s;
  if (find(plan.kernel) == nullptr) {
    int capturing = 0;
    {
      const Current current(driver_, handle_);
      if (driver_.stream_capturing(stream, &capturing) != 0) capturing = 0;
    }
    if (capturing != 0) {
      return refuse(Rule::kCapturing, {{"got", plan.kernel}});
    }
    if (Status s = load(plan.kernel); !s.ok()) return s;
  }
  return run(plan, args, stream);
}

}  // namespace oct::cuda
