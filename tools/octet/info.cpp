// `octet info`: what this build and this machine can do, and why a device will not do.
#include <memory>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "devices.h"
#include "json_text.h"
#include "octet/octet.hpp"
#include "option_parser.h"

namespace octet::tool {
namespace {

nlohmann::json gather() {
  nlohmann::json report;
  report["version"] = version();
  for (int32_t isa = OCTET_ISA_PORTABLE; isa <= OCTET_ISA_AVX512; ++isa) {
    report["cpu"][octet_isa_name(isa)] = octet_isa_available(isa) == 1;
  }
  for (int32_t i = 0; i < octet_device_preset_count(); ++i) {
    report["device_presets"].push_back(octet_device_preset_name(i));
  }
  report["kernels"] = octet_cuda_kernel_count();
  report["why_no_kernels"] = OCTET_WHY_NO_KERNELS;
  const auto driver = cuda::driver_version();
  report["driver"] = {{"usable", driver.ok()},
                      {"cuda_version", driver.ok() ? cuda_version_text(driver.value()) : ""},
                      {"why_not", driver.message()}};
  report["devices"] = nlohmann::json::array();
  for (int32_t i = 0; i < cuda::device_count(); ++i) {
    const auto device = cuda::device_spec(i);
    const auto name = cuda::device_name(i);
    report["devices"].push_back({{"ordinal", i},
                                 {"name", name.ok() ? name.value() : ""},
                                 {"usable", device.ok()},
                                 {"planned_as", device.ok() ? device.value().name : ""},
                                 {"sms", device.ok() ? device.value().sms : 0},
                                 {"why_not", device.message()}});
  }
  return report;
}

void print(const nlohmann::json& report) {
  fmt::print("octet {}\n\nCPU backend (the bits of Hopper's tensor cores)\n", version());
  for (const auto& [name, there] : report["cpu"].items()) {
    fmt::print("  {:<10} {}\n", name, there.get<bool>() ? "available" : "not on this processor");
  }
  const int kernels = report["kernels"].get<int>();
  fmt::print("\nHopper kernels\n  {}\n",
             kernels == 0 ? std::string("none in this build (" OCTET_WHY_NO_KERNELS ")")
                          : fmt::format("{} in this build", kernels));
  fmt::print("\nNVIDIA driver\n  {}\n",
             report["driver"]["usable"].get<bool>()
                 ? "for CUDA " + report["driver"]["cuda_version"].get<std::string>()
                 : report["driver"]["why_not"].get<std::string>());
  fmt::print("\nNVIDIA devices\n");
  if (report["devices"].empty()) fmt::print("  none\n");
  for (const auto& device : report["devices"]) {
    fmt::print("  {}: {}: {}\n", device["ordinal"].get<int>(), device["name"].get<std::string>(),
               device["usable"].get<bool>()
                   ? fmt::format("usable, planned as {}, {} SMs",
                                 device["planned_as"].get<std::string>(), device["sms"].get<int>())
                   : device["why_not"].get<std::string>());
  }
  fmt::print("\nDevices that plans can be made for (no such device, and no kernel, is needed)\n ");
  for (const auto& name : report["device_presets"]) fmt::print(" {}", name.get<std::string>());
  fmt::print("\n");
}

}  // namespace

Command add_info(CLI::App& app) {
  Subcommand info(app, "info", "what this build and this machine can do");
  const auto json = std::make_shared<bool>(false);
  info.flag("--json", *json, "print JSON");
  info.footer(
      "Examples:\n"
      "  octet info\n"
      "  octet info --json\n"
      "\nExit codes: 0, with and without a device; 2 bad input.\n");
  return {info.app(), [json] {
            const nlohmann::json report = gather();
            if (*json) {
              fmt::print("{}\n", json_text(report));
            } else {
              print(report);
            }
            return kRight;
          }};
}

}  // namespace octet::tool
