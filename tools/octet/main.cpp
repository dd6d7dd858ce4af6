// The command `octet`. Exit codes: 0 right, 1 a check failed, 2 bad input, 3 no usable device.
#include <cstdio>
#include <exception>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "demo.h"
#include "octet/octet.hpp"

namespace {

constexpr int kBadInput = 2;

int run_info(bool json) {
  nlohmann::json report;
  report["version"] = octet::version();
  for (int32_t isa = OCTET_ISA_PORTABLE; isa <= OCTET_ISA_AVX512; ++isa) {
    report["cpu"][octet_isa_name(isa)] = octet_isa_available(isa) == 1;
  }
  for (int32_t i = 0; i < octet_device_preset_count(); ++i) {
    report["device_presets"].push_back(octet_device_preset_name(i));
  }
  report["kernels"] = octet_cuda_kernel_count();
  report["devices"] = nlohmann::json::array();
  for (int32_t i = 0; i < octet_cuda_device_count(); ++i) {
    octet_device_spec device{};
    const octet::Status status(octet_cuda_device_spec(i, &device));
    report["devices"].push_back({{"ordinal", i},
                                 {"usable", status.ok()},
                                 {"planned_as", status.ok() ? device.name : ""},
                                 {"sms", device.sms},
                                 {"why_not", status.message()}});
  }
  if (json) {
    fmt::print("{}\n", report.dump(2));
    return 0;
  }
  fmt::print("octet {}\n\nCPU backend (the bits of Hopper's tensor cores)\n", octet::version());
  for (const auto& [name, there] : report["cpu"].items()) {
    fmt::print("  {:<10} {}\n", name, there.get<bool>() ? "available" : "not on this processor");
  }
  const int kernels = report["kernels"].get<int>();
  fmt::print("\nHopper kernels\n  {}\n", kernels == 0
                                             ? std::string("none in this build (made without nvcc)")
                                             : fmt::format("{} in this build", kernels));
  fmt::print("\nNVIDIA devices\n");
  if (report["devices"].empty()) fmt::print("  none (or no driver)\n");
  for (const auto& device : report["devices"]) {
    fmt::print("  {}: {}\n", device["ordinal"].get<int>(),
               device["usable"].get<bool>()
                   ? fmt::format("usable, planned as {}, {} SMs",
                                 device["planned_as"].get<std::string>(), device["sms"].get<int>())
                   : device["why_not"].get<std::string>());
  }
  fmt::print("\nDevices that plans can be made for (no such device, and no kernel, is needed)\n ");
  for (const auto& name : report["device_presets"]) fmt::print(" {}", name.get<std::string>());
  fmt::print("\n");
  return 0;
}

int run_plan(const std::string& text, const std::string& device_name, bool json) {
  const octet::GemmProblem problem = octet::GemmProblem::parse(text).value();
  const octet::DeviceSpec device = octet::DeviceSpec::preset(device_name).value();
  const octet::GemmPlan plan = octet::plan_gemm(problem, device).value();
  if (json) {
    const nlohmann::json report = {{"problem", problem.to_string()},
                                   {"device", plan.device},
                                   {"kernel", plan.kernel},
                                   {"split", plan.split},
                                   {"sms", plan.sms},
                                   {"workspace_bytes", plan.workspace_bytes},
                                   {"predicted_us", plan.predicted_us},
                                   {"plan", plan.to_string()}};
    fmt::print("{}\n", report.dump(2));
    return 0;
  }
  fmt::print("{}", octet::explain(problem, device).value());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "octet: fine-grained-scaled FP8 matrix multiplication for NVIDIA Hopper, with a CPU "
      "backend of the same bits"};
  app.set_version_flag("--version", std::string("octet ") + octet::version());
  app.require_subcommand(1);
  bool json = false;

  auto* demo = app.add_subcommand("demo", "multiply a real trained layer in FP8 and compare");
  std::string samples = "samples";
  demo->add_option("--samples", samples, "folder that holds minilm_ffn.safetensors")
      ->capture_default_str();
  demo->add_flag("--json", json, "print JSON");

  auto* info = app.add_subcommand("info", "what this build and this machine can do");
  info->add_flag("--json", json, "print JSON");

  auto* plan = app.add_subcommand("plan", "how a problem would be computed, and why");
  std::string problem;
  std::string device = "cpu";
  plan->add_option("problem", problem, "a problem string, e.g. dense_m4096n7168k2048")->required();
  plan->add_option("--device", device,
                   "cpu, h100_sxm, h100_pcie, h200, h800, h20 or gh200 (no such device is needed)")
      ->capture_default_str();
  plan->add_flag("--json", json, "print JSON");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11's own codes would collide with ours.
    return app.exit(error) == 0 ? 0 : kBadInput;
  }

  try {
    if (demo->parsed()) return octet::tool::run_demo(samples, json);
    if (info->parsed()) return run_info(json);
    return run_plan(problem, device, json);
  } catch (const std::exception& error) {
    fmt::print(stderr, "octet: {}\n", error.what());
    return kBadInput;
  }
}
