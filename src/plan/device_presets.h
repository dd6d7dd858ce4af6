// Numbers of devices by name, so that planning is done and tested without a GPU.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "core/status.h"
#include "octet/octet.h"

namespace oct::plan {

std::span<const octet_device_spec> device_presets();
Status device_preset(std::string_view name, octet_device_spec& device);

inline bool is_cpu(const octet_device_spec& device) { return device.compute_major == 0; }

// The name up to its terminating zero, or all of its room.
inline std::string_view device_name(const octet_device_spec& device) {
  return {device.name, strnlen(device.name, sizeof device.name)};
}

inline constexpr std::string_view kCpuName = "cpu";  // of the device, and of its only kernel

// Letters, digits, _ - and . alone: what stands in a plan string.
bool is_plain_name(std::string_view name);
// In quotes, and what cannot be printed as ?.
std::string printable(std::string_view name);

Status check_device(const octet_device_spec& device);

}  // namespace oct::plan
