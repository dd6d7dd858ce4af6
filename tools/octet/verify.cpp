// `octet verify`: is this machine's device right? Every kernel of the library, with every split of
// K that it serves, computes the problems of verify_case.h, and every byte it leaves in memory is
// compared with what the CPU backend computes. The bits of a result depend on the inputs and the
// split alone, so one run on the processor serves all kernels of a split.
#include <algorithm>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "commands.h"
#include "device_memory.h"
#include "devices.h"
#include "kernel_tile.h"
#include "octet/octet.hpp"
#include "option_parser.h"
#include "verify_case.h"
#include "verify_report.h"
#include "watchdog.h"

namespace octet::tool {
namespace {

constexpr double kLongestLaunch = 10;  // seconds; they take microseconds
constexpr double kLongestStep = 60;    // of anything else: a context, a product on the processor

struct VerifyOptions {
  int32_t device = 0;
  double seconds = 60;
  std::string kernel;  // part of a name; empty: all
  bool json = false;
};

// A kernel with a split on a problem, ready to launch.
struct Launch {
  GemmPlan plan;
  cuda::BoundGemm bound;
};

std::vector<std::string> find_kernels(const std::string& part) {
  std::vector<std::string> names;
  for (int32_t i = 0; i < octet_cuda_kernel_count(); ++i) {
    const std::string name = octet_cuda_kernel_name(i);
    if (name.find(part) != std::string::npos) names.push_back(name);
  }
  if (names.empty()) {
    throw std::runtime_error(
        fmt::format("--kernel \"{}\": must be part of the name of a kernel, such as {}", part,
                    octet_cuda_kernel_name(0)));
  }
  return names;
}

class Verifier {
 public:
  Verifier(const VerifyOptions& options, Watchdog& watchdog)
      : options_(options),
        watchdog_(watchdog),
        report_(options.device, verify_cases().size(), options.json),
        context_(cuda::Context::create(options.device).value()),
        device_(context_.device().value()),
        stream_(options.device) {}

  // The exit code.
  int run();

 private:
  bool time_is_up() const { return report_.seconds() > options_.seconds; }

  void load_kernels();
  bool check_case(const CaseSpec& spec);  // false: the time was over before its end
  std::vector<Launch> bind_all(const VerifyCase& c, const GemmArgs& args, int32_t split);
  void check_launch(const VerifyCase& c, const Launch& launch, DeviceBuffer& d,
                    const VerifyCase::Bytes& want);

  const VerifyOptions options_;
  Watchdog& watchdog_;
  VerifyReport report_;
  cuda::Context context_;
  const DeviceSpec device_;
  const DeviceStream stream_;
  std::vector<std::string> kernels_;  // those asked for, loaded
};

void Verifier::load_kernels() {
  for (const std::string& name : find_kernels(options_.kernel)) {
    report_.expect(name);
    watchdog_.step("loading kernel " + name);
    GemmPlan plan;
    name.copy(plan.kernel, sizeof plan.kernel - 1);
    if (const Status status = context_.prepare(plan); status.ok()) {
      kernels_.push_back(name);
    } else {
      report_.failed(name, status.message());
    }
  }
}

// The kernels that compute the problem with K in `split` ranges.
std::vector<Launch> Verifier::bind_all(const VerifyCase& c, const GemmArgs& args, int32_t split) {
  std::vector<Launch> launches;
  for (const std::string& kernel : kernels_) {
    const auto tile = parse_kernel_tile(kernel);
    const int32_t budget = c.problem().sm_budget;
    Launch launch;
    GemmPlan& plan = launch.plan;
    plan.struct_size = sizeof(octet_gemm_plan);
    plan.problem = c.problem();
    plan.split = split;
    // As many CTAs as the planner would launch, or a few more than are resident at a time.
    plan.sms =
        budget > 0 ? std::min(budget, device_.sms) : device_.sms * (tile ? tile->ctas_per_sm : 1);
    std::copy(std::begin(device_.name), std::end(device_.name), plan.device);
    kernel.copy(plan.kernel, sizeof plan.kernel - 1);
    auto bound = context_.bind(plan, args);
    if (bound.ok()) {
      launch.bound = std::move(bound).value();
      launches.push_back(std::move(launch));
    } else if (bound.status().code() != OCTET_UNSUPPORTED) {  // that: it has no such split
      report_.failed(plan.to_string(), bound.message());
    }
  }
  return launches;
}

bool Verifier::check_case(const CaseSpec& spec) {
  watchdog_.step(fmt::format("operands of {}", spec.problem));
  const VerifyCase c(spec);
  std::vector<DeviceBuffer> buffers;
  VerifyCase::Addresses addresses{};
  for (int i = 0; i < VerifyCase::kBuffers; ++i) {
    buffers.emplace_back(c.buffer(static_cast<VerifyCase::Buffer>(i)), stream_);
    addresses[static_cast<std::size_t>(i)] = buffers.back().data();
  }
  const GemmArgs args = c.args(addresses);
  for (int32_t split = 1; split <= spec.most_split; ++split) {
    if (time_is_up()) return false;
    const std::vector<Launch> launches = bind_all(c, args, split);
    if (launches.empty()) continue;
    watchdog_.step(fmt::format("{} with split {} on the processor", spec.problem, split));
    const VerifyCase::Bytes want = c.run_on_cpu(split);
    for (const Launch& launch : launches) {
      check_launch(c, launch, buffers[VerifyCase::kD], want);
    }
  }
  return true;
}

void Verifier::check_launch(const VerifyCase& c, const Launch& launch, DeviceBuffer& d,
                            const VerifyCase::Bytes& want) {
  const std::string what = fmt::format("{} with split {} on {}", launch.plan.kernel,
                                       launch.plan.split, c.problem().to_string());
  watchdog_.step(what);
  const VerifyCase::Bytes& before = c.buffer(VerifyCase::kD);
  VerifyCase::Bytes got(before.size());
  try {
    d.upload(before.data(), before.size(), stream_);
    context_.run(launch.bound, stream_.get()).value();
    if (!stream_.wait(kLongestLaunch)) Watchdog::give_up(what, kLongestLaunch);
    d.download(got.data(), got.size(), stream_);
  } catch (const std::exception& error) {
    throw DeviceError(what + ": " + error.what());
  }
  report_.compared(launch.plan, c.outputs(), c.compare(got, want));
}

int Verifier::run() {
  load_kernels();
  try {
    for (const CaseSpec& spec : verify_cases()) {
      if (!check_case(spec)) {
        report_.stop(fmt::format("the {} s are over, in {}", options_.seconds, spec.problem),
                     false);
        break;
      }
      report_.shape_done();
    }
  } catch (const DeviceError& error) {
    // After a fault the device answers nothing more to this process.
    report_.stop(error.what(), true);
  }
  return report_.finish();
}

int run_verify(const VerifyOptions& options) {
  Watchdog watchdog(kLongestStep);
  watchdog.step(fmt::format("opening device {}", options.device));
  require_usable(options.device);
  find_kernels(options.kernel);  // a bad name is told before the device is opened
  return Verifier(options, watchdog).run();
}

}  // namespace

Command add_verify(CLI::App& app) {
  Subcommand verify(app, "verify",
                    "compare every kernel's results on this machine's device with the CPU's bits");
  const auto options = std::make_shared<VerifyOptions>();
  verify.add("--device", options->device, "number of the device, from 0")
      .between(0, 1023)
      .shows_default();
  verify.add("--seconds", options->seconds, "stop after so long")
      .between(1.0, 86400.0)
      .shows_default();
  verify.add("--kernel", options->kernel, "only kernels whose name contains this");
  verify.flag("--json", options->json, "print JSON");
  verify.footer(
      "Every kernel, with every split of K that it has, computes fixed problems; results, and the "
      "bytes\naround them, must be those of the CPU backend. What differs is told with its "
      "coordinate, both\nvalues, tile and warp.\n"
      "\nExamples:\n"
      "  octet verify                          all kernels on device 0\n"
      "  octet verify --device 1 --kernel swapped --json\n"
      "\nExit codes: 0 all equal; 1 a result differs, the device failed or hung, or time was too "
      "short\nfor all; 2 bad input; 3 no usable device, or no kernels in this build.\n");
  return {verify.app(), [options] { return run_verify(*options); }};
}

}  // namespace octet::tool
