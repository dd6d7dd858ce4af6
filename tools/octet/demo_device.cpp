// See demo_device.h.
#include "demo_device.h"

#include <chrono>

#include <fmt/format.h>

#include "devices.h"
#include "watchdog.h"

namespace octet::tool {
namespace {

constexpr double kLongestLaunch = 10;  // seconds

cuda::Context open(int32_t ordinal) {
  require_usable(ordinal);
  return cuda::Context::create(ordinal).value();
}

}  // namespace

DemoDevice::DemoDevice(int32_t ordinal)
    : context_(open(ordinal)),
      stream_(ordinal),
      spec_(context_.device().value()),
      name_(cuda::device_name(ordinal).value()) {}

std::vector<float> DemoDevice::multiply(const GemmPlan& plan, const GemmArgs& host,
                                        double& milliseconds) {
  const auto copy = [&](const void* from, int64_t bytes) {
    DeviceBuffer buffer(static_cast<std::size_t>(bytes));
    buffer.upload(from, buffer.bytes(), stream_);
    return buffer;
  };
  const int64_t blocks = k_blocks(plan.problem.k);
  const DeviceBuffer a = copy(host.a.data, host.a.rows * host.a.ld);
  const DeviceBuffer b = copy(host.b.data, host.b.rows * host.b.ld);
  const DeviceBuffer sfa = copy(host.sfa.data, blocks * host.sfa.k_stride * 4);
  const DeviceBuffer sfb = copy(host.sfb.data, blocks * host.sfb.k_stride * 4);
  std::vector<float> result(static_cast<std::size_t>(host.d.rows * host.d.ld));
  const DeviceBuffer d(result.size() * sizeof(float));
  GemmArgs args = host;
  args.a.data = a.data();
  args.b.data = b.data();
  args.d.data = d.data();
  args.sfa.data = static_cast<const float*>(sfa.data());
  args.sfb.data = static_cast<const float*>(sfb.data());

  context_.prepare(plan).value();
  const auto bound = context_.bind(plan, args);
  // The first launch finds the device asleep.
  for (int launch = 0; launch < 2; ++launch) {
    const auto start = std::chrono::steady_clock::now();
    context_.run(bound.value(), stream_.get()).value();
    if (!stream_.wait(kLongestLaunch)) Watchdog::give_up(plan.to_string(), kLongestLaunch);
    milliseconds =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }
  d.download(result.data(), d.bytes(), stream_);
  return result;
}

}  // namespace octet::tool
