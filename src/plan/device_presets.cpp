// See device_presets.h. The H200's figures were measured (docs/performance-log.md); the others are
// its ratios of measured to advertised rates applied to their advertised rates.
#include "plan/device_presets.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "core/refusals.h"

namespace oct::plan {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kHopperSharedMemory = 232448;  // most dynamic shared memory of one CTA

struct Numbers {
  const char* name;
  int32_t sms;
  int64_t l2;
  double dram, fp8, bf16;
  int32_t clusters[5];
};

constexpr octet_device_spec hopper(const Numbers& x) {
  octet_device_spec d{};
  d.struct_size = sizeof d;
  d.compute_major = 9;
  d.compute_minor = 0;
  d.sms = x.sms;
  for (int i = 0; i < 31 && x.name[i] != 0; ++i) d.name[i] = x.name[i];
  d.shared_memory_bytes = kHopperSharedMemory;
  d.l2_bytes = x.l2;
  d.dram_bytes_per_second = x.dram;
  d.fp8_flops_per_second = x.fp8;
  d.bf16_flops_per_second = x.bf16;
  d.launch_seconds = 2e-6;
  for (int i = 0; i < 5; ++i) d.active_clusters[i] = x.clusters[i];
  return d;
}

constexpr octet_device_spec cpu() {
  octet_device_spec d{};
  d.struct_size = sizeof d;
  d.name[0] = 'c';
  d.name[1] = 'p';
  d.name[2] = 'u';
  return d;
}

// Clusters of 4 and 8 fill only whole groups of SMs: 120 of 132 on the H200 measured.
constexpr std::array kPresets{
    hopper({"h100_sxm", 132, 50 * kMiB, 3.23e12, 1672e12, 790e12, {132, 66, 30, 15, 0}}),
    hopper({"h100_pcie", 114, 50 * kMiB, 1.93e12, 1150e12, 560e12, {114, 57, 26, 13, 0}}),
    hopper({"h200", 132, 60 * kMiB, 4.63e12, 1672e12, 790e12, {132, 66, 30, 15, 0}}),
    hopper({"h800", 132, 50 * kMiB, 3.23e12, 1672e12, 790e12, {132, 66, 30, 15, 0}}),
    hopper({"h20", 78, 60 * kMiB, 3.86e12, 287e12, 143e12, {78, 39, 18, 9, 0}}),
    hopper({"gh200", 132, 50 * kMiB, 3.86e12, 1672e12, 790e12, {132, 66, 30, 15, 0}}),
    cpu(),
};

}  // namespace

std::span<const octet_device_spec> device_presets() { return kPresets; }

Status device_preset(std::string_view name, octet_device_spec& device) {
  std::string names;
  for (const octet_device_spec& preset : kPresets) {
    if (name == preset.name) {
      device = preset;
      return {};
    }
    names += fmt::format("{}{}", names.empty() ? "" : ", ", preset.name);
  }
  return core::refuse(core::Rule::kDeviceName,
                      {{"got", std::string(name.substr(0, 64))}, {"want", names}});
}

namespace {

// Numbers that a hand-made device may have wrong: a plan made from them would mean nothing.
Status check_numbers(const octet_device_spec& device) {
  const auto wrong = [](const char* arg, std::string got, const char* want) {
    return core::refuse(core::Rule::kEnumValue,
                        {{"arg", arg}, {"got", std::move(got)}, {"want", want}});
  };
  constexpr int32_t kMostSms = 1024;
  if (device.sms < 1 || device.sms > kMostSms) {
    return wrong("device.sms", core::text(device.sms), "from 1 to 1024");
  }
  for (const int32_t clusters : device.active_clusters) {
    if (clusters < 0 || clusters > device.sms) {
      return wrong("device.active_clusters", core::text(clusters), "from 0 to device.sms");
    }
  }
  const struct {
    const char* arg;
    double got;
  } rates[] = {{"device.dram_bytes_per_second", device.dram_bytes_per_second},
               {"device.fp8_flops_per_second", device.fp8_flops_per_second},
               {"device.bf16_flops_per_second", device.bf16_flops_per_second}};
  for (const auto& rate : rates) {
    if (!(rate.got >= 1e6 && rate.got <= 1e18)) {
      return wrong(rate.arg, fmt::format("{}", rate.got), "from 1e6 to 1e18");
    }
  }
  if (!(device.launch_seconds >= 0 && device.launch_seconds <= 1)) {
    return wrong("device.launch_seconds", fmt::format("{}", device.launch_seconds), "from 0 to 1");
  }
  return {};
}

}  // namespace

bool is_plain_name(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

std::string printable(std::string_view name) {
  std::string text = "\"";
  for (const char c : name) text += c >= ' ' && c <= '~' ? c : '?';
  return text + "\"";
}

Status check_device(const octet_device_spec& device) {
  if (device.struct_size != sizeof device) {
    return core::refuse(core::Rule::kStructSize, {{"arg", "device"},
                                                  {"got", core::text(device.struct_size)},
                                                  {"want", core::text(sizeof device)},
                                                  {"init", "octet_device_preset"}});
  }
  const std::string_view name = device_name(device);
  if (name.empty() || name.size() >= sizeof device.name || !is_plain_name(name)) {
    return core::refuse(core::Rule::kEnumValue,
                        {{"arg", "device.name"},
                         {"got", printable(name)},
                         {"want", "1 to 31 letters, digits, _ - or ., and a terminating zero"}});
  }
  if ((name == kCpuName) != is_cpu(device)) {
    return core::refuse(core::Rule::kEnumValue,
                        {{"arg", "device.name"},
                         {"got", printable(name)},
                         {"want", is_cpu(device)
                                      ? "\"cpu\" where the compute capability is 0"
                                      : "another one: \"cpu\" has compute capability 0.0"}});
  }
  if (is_cpu(device)) return {};
  if (device.compute_major != 9 || device.compute_minor != 0) {
    return core::refuse(core::Rule::kDeviceArchitecture,
                        {{"device", std::string(device_name(device))},
                         {"got",
                          fmt::format("{}.{}", device.compute_major, device.compute_minor)}});
  }
  return check_numbers(device);
}

}  // namespace oct::plan
