// `octet verify`: is this machine's device right? Every kernel of the library, with every split of
// K that it serves, computes the problems of verify_case.h, and every byte it leaves in memory is
// compared with what the CPU backend computes. The bits of a result depend on the inputs and the
// split alone, so one run on the processor serves all kernels of a split.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "device_memory.h"
#include "devices.h"
#include "kernel_tile.h"
#include "octet/octet.hpp"
#include "verify_case.h"
#include "watchdog.h"

namespace octet::tool {
namespace {

constexpr double kLongestLaunch = 10;  // seconds; they take microseconds
constexpr double kLongestStep = 60;    // of anything else: a context, a product on the processor
constexpr std::size_t kMostTold = 20;  // differences that are described

struct VerifyOptions {
  int32_t device = 0;
  double seconds = 60;
  std::string kernel;  // part of a name; empty: all
  bool json = false;
};

// What was compared of one kernel.
struct Tally {
  std::vector<int32_t> splits;
  int64_t problems = 0, outputs = 0, wrong = 0;  // wrong: problems that differ
};

// A kernel with a split on a problem, ready to launch.
struct Launch {
  GemmPlan plan;
  cuda::BoundGemm bound;
};

class Verifier {
 public:
  Verifier(const VerifyOptions& options, Watchdog& watchdog)
      : options_(options),
        watchdog_(watchdog),
        context_(cuda::Context::create(options.device).value()),
        device_(context_.device().value()),
        stream_(options.device) {}

  // The exit code.
  int run();

 private:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  bool time_is_up() const { return seconds() > options_.seconds; }

  void load_kernels();
  bool check_case(const CaseSpec& spec);  // false: the time was over before its end
  std::vector<Launch> bind_all(const VerifyCase& c, const GemmArgs& args, int32_t split);
  void check_launch(const VerifyCase& c, const Launch& launch, DeviceBuffer& d,
                    const VerifyCase::Bytes& want);
  void tell(const std::string& where, const std::string& what, nlohmann::json details);
  void show_progress();
  void clear_progress() const;
  std::vector<std::string> unchecked() const;
  void print_summary(const std::string& stopped) const;
  nlohmann::json report(const std::string& stopped) const;

  const VerifyOptions options_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  Watchdog& watchdog_;
  cuda::Context context_;
  const DeviceSpec device_;
  const DeviceStream stream_;

  std::vector<std::string> kernels_;  // those asked for, loaded
  std::map<std::string, Tally> tallies_;
  std::size_t cases_done_ = 0;
  int64_t problems_ = 0, outputs_ = 0, mismatches_ = 0, failures_ = 0;
  nlohmann::json told_ = nlohmann::json::array();
  const bool shows_progress_ = isatty(STDERR_FILENO) == 1;
  double shown_at_ = -1;
};

void Verifier::load_kernels() {
  for (int32_t i = 0; i < octet_cuda_kernel_count(); ++i) {
    const std::string name = octet_cuda_kernel_name(i);
    if (name.find(options_.kernel) == std::string::npos) continue;
    tallies_[name];
    GemmPlan plan;
    name.copy(plan.kernel, sizeof plan.kernel - 1);
    watchdog_.step("loading kernel " + name);
    if (const Status status = context_.prepare(plan); status.ok()) {
      kernels_.push_back(name);
    } else {
      ++failures_;
      tell(name, status.message(), {{"kernel", name}});
    }
  }
}

// The kernels that compute the problem with K in `split` ranges.
std::vector<Launch> Verifier::bind_all(const VerifyCase& c, const GemmArgs& args, int32_t split) {
  std::vector<Launch> launches;
  for (const std::string& kernel : kernels_) {
    const auto tile = parse_kernel_tile(kernel);
    Launch launch;
    GemmPlan& plan = launch.plan;
    plan.struct_size = sizeof(octet_gemm_plan);
    plan.problem = c.problem();
    plan.split = split;
    // As many CTAs as the planner would launch, or a few more than are resident at a time.
    const int32_t budget = c.problem().sm_budget;
    plan.sms =
        budget > 0 ? std::min(budget, device_.sms) : device_.sms * (tile ? tile->ctas_per_sm : 1);
    std::copy(std::begin(device_.name), std::end(device_.name), plan.device);
    kernel.copy(plan.kernel, sizeof plan.kernel - 1);
    auto bound = context_.bind(plan, args);
    if (bound.ok()) {
      launch.bound = std::move(bound).value();
      launches.push_back(std::move(launch));
    } else if (bound.status().code() != OCTET_UNSUPPORTED) {  // that: it has no such split
      ++failures_;
      tell(plan.to_string(), bound.message(), {{"kernel", kernel}, {"plan", plan.to_string()}});
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
      show_progress();
    }
  }
  return true;
}

void Verifier::check_launch(const VerifyCase& c, const Launch& launch, DeviceBuffer& d,
                            const VerifyCase::Bytes& want) {
  const std::string kernel = launch.plan.kernel;
  const std::string what =
      fmt::format("{} with split {} on {}", kernel, launch.plan.split, c.problem().to_string());
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

  Tally& tally = tallies_[kernel];
  if (std::find(tally.splits.begin(), tally.splits.end(), launch.plan.split) ==
      tally.splits.end()) {
    tally.splits.push_back(launch.plan.split);
  }
  ++problems_;
  ++tally.problems;
  outputs_ += c.outputs();
  tally.outputs += c.outputs();
  const auto difference = c.compare(got, want);
  if (!difference) return;

  mismatches_ += difference->outputs + difference->strays;
  ++tally.wrong;
  const Difference& x = *difference;
  nlohmann::json details = {{"kernel", kernel},
                            {"split", launch.plan.split},
                            {"problem", c.problem().to_string()},
                            {"plan", launch.plan.to_string()},
                            {"outputs_that_differ", x.outputs},
                            {"stray_bytes", x.strays},
                            {"device_value", x.got},
                            {"cpu_value", x.want}};
  std::string text = fmt::format("{} of {} outputs differ", x.outputs, c.outputs());
  if (x.strays > 0) text += fmt::format(", {} bytes outside D were written", x.strays);
  if (x.inside) {
    const std::string place = describe_place(kernel, x.row, x.col);
    details.update({{"group", x.group}, {"row", x.row}, {"column", x.col}, {"tile", place}});
    text += fmt::format("\n  first: D[{}, {}]{}: the device has {}, the CPU {}\n  {}", x.row, x.col,
                        c.problem().groups > 1 ? fmt::format(" of group {}", x.group) : "", x.got,
                        x.want, place);
  } else {
    details["place"] = x.place;
    text +=
        fmt::format("\n  first: {}: the device has left {}, there was {}", x.place, x.got, x.want);
  }
  tell(what, text, std::move(details));
}

void Verifier::tell(const std::string& where, const std::string& what, nlohmann::json details) {
  if (told_.size() >= kMostTold) return;
  details["message"] = what;
  told_.push_back(std::move(details));
  if (options_.json) return;
  clear_progress();
  fmt::print("WRONG: {}: {}\n", where, what);
  if (told_.size() == kMostTold) fmt::print("further differences are counted, not described\n");
  std::fflush(stdout);
}

void Verifier::clear_progress() const {
  if (shows_progress_) fmt::print(stderr, "\r\033[K");
}

void Verifier::show_progress() {
  constexpr double kInterval = 0.2;
  if (!shows_progress_ || seconds() - shown_at_ < kInterval) return;
  shown_at_ = seconds();
  fmt::print(stderr, "\r\033[Kshape {} of {}: {} problems compared, {} mismatches, {:.0f} s",
             cases_done_ + 1, verify_cases().size(), problems_, mismatches_, seconds());
  std::fflush(stderr);
}

std::vector<std::string> Verifier::unchecked() const {
  std::vector<std::string> names;
  for (const auto& [name, tally] : tallies_) {
    if (tally.problems == 0) names.push_back(name);
  }
  return names;
}

nlohmann::json Verifier::report(const std::string& stopped) const {
  nlohmann::json kernels = nlohmann::json::array();
  for (const auto& [name, tally] : tallies_) {
    kernels.push_back({{"name", name},
                       {"splits", tally.splits},
                       {"problems", tally.problems},
                       {"outputs", tally.outputs},
                       {"problems_that_differ", tally.wrong}});
  }
  return {{"version", version()},
          {"device", cuda::device_name(options_.device).value()},
          {"driver", cuda_version_text(cuda::driver_version().value())},
          {"kernels", kernels},
          {"shapes", {{"all", verify_cases().size()}, {"done", cases_done_}}},
          {"problems", problems_},
          {"outputs", outputs_},
          {"mismatches", mismatches_},
          {"failures", failures_},
          {"differences", told_},
          {"unchecked", unchecked()},
          {"stopped", stopped},
          {"seconds", seconds()}};
}

void Verifier::print_summary(const std::string& stopped) const {
  std::size_t forms = 0;
  for (const auto& [name, tally] : tallies_) forms += tally.splits.size();
  if (!stopped.empty()) fmt::print("STOPPED: {}\n", stopped);
  for (const std::string& name : unchecked()) fmt::print("NOT CHECKED: {}\n", name);
  fmt::print(
      "{} kernels ({} with their splits), {} problems, {} outputs compared bit by bit with the "
      "CPU's, {} mismatches, {:.1f} s\n",
      tallies_.size(), forms, problems_, outputs_, mismatches_, seconds());
}

int Verifier::run() {
  if (!options_.json) {
    fmt::print("device {}: {}, driver for CUDA {}\n", options_.device,
               cuda::device_name(options_.device).value(),
               cuda_version_text(cuda::driver_version().value()));
    std::fflush(stdout);
  }
  load_kernels();
  std::string stopped;
  try {
    for (const CaseSpec& spec : verify_cases()) {
      if (!check_case(spec)) break;
      ++cases_done_;
    }
    if (cases_done_ < verify_cases().size()) {
      stopped = fmt::format("the {} s are over: {} of {} shapes were checked to the end",
                            options_.seconds, cases_done_, verify_cases().size());
    }
  } catch (const DeviceError& error) {
    // After a fault the device answers nothing more to this process.
    ++failures_;
    stopped = error.what();
  }
  clear_progress();
  if (options_.json) {
    fmt::print("{}\n", report(stopped).dump(2));
  } else {
    print_summary(stopped);
  }
  const bool right = mismatches_ == 0 && failures_ == 0 && unchecked().empty();
  if (!options_.json)
    fmt::print("{}\n", !right            ? "FAILED"
                       : stopped.empty() ? "all equal"
                                         : "all equal as far as it came");
  return right ? kRight : kCheckFailed;
}

int run_verify(const VerifyOptions& options) {
  Watchdog watchdog(kLongestStep);
  watchdog.step(fmt::format("opening device {}", options.device));
  require_usable(options.device);
  bool any = false;
  for (int32_t i = 0; i < octet_cuda_kernel_count(); ++i) {
    any |= std::string(octet_cuda_kernel_name(i)).find(options.kernel) != std::string::npos;
  }
  if (!any) {
    throw std::runtime_error(
        fmt::format("--kernel \"{}\": must be part of the name of a kernel, such as {}",
                    options.kernel, octet_cuda_kernel_name(0)));
  }
  return Verifier(options, watchdog).run();
}

}  // namespace

Command add_verify(CLI::App& app) {
  auto* verify = app.add_subcommand(
      "verify", "compare every kernel's results on this machine's device with the CPU's bits");
  const auto options = std::make_shared<VerifyOptions>();
  verify->add_option("--device", options->device, "number of the device, from 0")
      ->check(CLI::Range(0, 1023))
      ->capture_default_str();
  verify->add_option("--seconds", options->seconds, "stop after so long")
      ->check(CLI::Range(1.0, 86400.0))
      ->capture_default_str();
  verify->add_option("--kernel", options->kernel, "only kernels whose name contains this");
  verify->add_flag("--json", options->json, "print JSON");
  return {verify, [options] { return run_verify(*options); }};
}

}  // namespace octet::tool
