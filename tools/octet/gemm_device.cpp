// See gemm_device.h.
#include "gemm_device.h"

#include <chrono>

#include "devices.h"
#include "interrupts.h"
#include "watchdog.h"

namespace octet::tool {
namespace {

constexpr double kLongestLaunch = 60;  // seconds

cuda::Context open(int32_t ordinal) {
  require_usable(ordinal);
  return cuda::Context::create(ordinal).value();
}

int64_t bytes_of(octet_type type) { return type == OCTET_F32 ? 4 : type == OCTET_NONE ? 0 : 2; }

}  // namespace

GemmDevice::GemmDevice(int32_t ordinal)
    : context_(open(ordinal)),
      stream_(ordinal),
      spec_(context_.device().value()),
      name_(cuda::device_name(ordinal).value()) {}

double GemmDevice::multiply(const GemmPlan& plan, const GemmArgs& host) {
  const auto copy = [&](const void* from, int64_t bytes) {
    DeviceBuffer buffer(static_cast<std::size_t>(bytes));
    buffer.upload(from, buffer.bytes(), stream_);
    return buffer;
  };
  const int64_t blocks = k_blocks(plan.problem.k);
  if (!has_b_) {
    b_ = copy(host.b.data, host.b.rows * host.b.ld);
    sfb_ = copy(host.sfb.data, blocks * host.sfb.k_stride * 4);
    bias_ = copy(host.bias, plan.problem.n * bytes_of(plan.problem.bias_type));
    has_b_ = true;
  }
  const DeviceBuffer a = copy(host.a.data, host.a.rows * host.a.ld);
  const DeviceBuffer sfa = copy(host.sfa.data, blocks * host.sfa.k_stride * 4);
  const DeviceBuffer d(
      static_cast<std::size_t>(host.d.rows * host.d.ld * bytes_of(plan.problem.d_type)));
  const DeviceBuffer workspace(static_cast<std::size_t>(plan.workspace_bytes));
  GemmArgs args = host;
  args.a.data = a.data();
  args.b.data = b_.data();
  args.d.data = d.data();
  args.sfa.data = static_cast<const float*>(sfa.data());
  args.sfb.data = static_cast<const float*>(sfb_.data());
  args.bias = bias_.data();
  args.workspace = workspace.data();
  args.workspace_bytes = plan.workspace_bytes;
  context_.prepare(plan).value();
  const auto bound = context_.bind(plan, args);
  double milliseconds = 0;
  // The first launch finds the device asleep.
  for (int launch = 0; launch < 2; ++launch) {
    const auto start = std::chrono::steady_clock::now();
    context_.run(bound.value(), stream_.get()).value();
    if (!stream_.wait(kLongestLaunch)) {
      remove_unfinished();
      Watchdog::give_up(plan.to_string(), kLongestLaunch);
    }
    milliseconds =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }
  d.download(host.d.data, d.bytes(), stream_);
  return milliseconds;
}

}  // namespace octet::tool
