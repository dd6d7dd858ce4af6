// See verify_report.h.
#include "verify_report.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "commands.h"
#include "complain.h"
#include "devices.h"
#include "json_text.h"
#include "kernel_tile.h"

namespace octet::tool {
namespace {

constexpr std::size_t kMostTold = 20;  // differences that are described

}  // namespace

VerifyReport::VerifyReport(int32_t device, std::size_t shapes, bool json)
    : device_(cuda::device_name(device).value()),
      driver_(cuda_version_text(cuda::driver_version().value())),
      shapes_(shapes),
      json_(json),
      shows_progress_(isatty(STDERR_FILENO) == 1) {
  if (json_) return;
  fmt::print("device {}: {}, driver for CUDA {}\n", device, device_, driver_);
  std::fflush(stdout);
}

double VerifyReport::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void VerifyReport::expect(const std::string& kernel) { tallies_[kernel]; }

void VerifyReport::compared(const GemmPlan& plan, int64_t outputs,
                            const std::optional<Difference>& difference) {
  Tally& tally = tallies_[plan.kernel];
  ++tally.problems_of_split[plan.split];
  ++tally.problems;
  ++problems_;
  tally.outputs += outputs;
  outputs_ += outputs;
  if (difference) {
    ++tally.wrong;
    mismatches_ += difference->outputs + difference->strays;
    describe(plan, outputs, *difference);
  }
  show_progress();
}

void VerifyReport::failed(const std::string& where, const std::string& message) {
  ++failures_;
  tell(where, message, {{"where", where}});
}

void VerifyReport::stop(const std::string& reason, bool fault) {
  if (fault) ++failures_;
  stopped_ = reason;
}

void VerifyReport::describe(const GemmPlan& plan, int64_t outputs, const Difference& x) {
  const int64_t groups = plan.problem.groups;
  std::string text = fmt::format("{} of {} outputs differ", x.outputs, outputs);
  if (x.strays > 0) text += fmt::format(", {} bytes outside D were written", x.strays);
  nlohmann::json details = {{"plan", plan.to_string()},
                            {"outputs_that_differ", x.outputs},
                            {"stray_bytes", x.strays},
                            {"device_value", x.got},
                            {"cpu_value", x.want}};
  if (x.inside) {
    const std::string place = describe_place(plan.kernel, x.row, x.col);
    details.update({{"group", x.group}, {"row", x.row}, {"column", x.col}, {"tile", place}});
    text +=
        fmt::format("\n  first: D[{}, {}]{}: the device has {}, the CPU {}\n  {}", x.row, x.col,
                    groups > 1 ? fmt::format(" of group {}", x.group) : "", x.got, x.want, place);
  } else {
    details["place"] = x.place;
    text +=
        fmt::format("\n  first: {}: the device has left {}, there was {}", x.place, x.got, x.want);
  }
  text += "\n  " + plan.to_string();
  tell(fmt::format("{} with split {}", plan.kernel, plan.split), text, std::move(details));
}

void VerifyReport::tell(const std::string& where, const std::string& message,
                        nlohmann::json details) {
  if (told_.size() >= kMostTold) return;
  details["message"] = message;
  told_.push_back(std::move(details));
  if (json_) return;
  clear_progress();
  fmt::print("WRONG: {}: {}\n", where, message);
  if (told_.size() == kMostTold) fmt::print("what differs further is counted, not described\n");
  std::fflush(stdout);
}

void VerifyReport::clear_progress() const {
  if (shows_progress_) complain("\r\033[K");
}

void VerifyReport::show_progress() {
  constexpr double kInterval = 0.2;
  if (!shows_progress_ || seconds() - shown_at_ < kInterval) return;
  shown_at_ = seconds();
  complain("\r\033[Kshape {} of {}: {} problems compared, {} mismatches, {:.0f} s",
           shapes_done_ + 1, shapes_, problems_, mismatches_, seconds());
  std::fflush(stderr);
}

std::vector<std::string> VerifyReport::unchecked() const {
  std::vector<std::string> names;
  for (const auto& [name, tally] : tallies_) {
    if (tally.problems == 0) names.push_back(name);
  }
  return names;
}

nlohmann::json VerifyReport::to_json() const {
  nlohmann::json kernels = nlohmann::json::array();
  for (const auto& [name, tally] : tallies_) {
    nlohmann::json splits = nlohmann::json::array();
    for (const auto& [split, problems] : tally.problems_of_split) splits.push_back(split);
    kernels.push_back({{"name", name},
                       {"splits", splits},
                       {"problems", tally.problems},
                       {"outputs", tally.outputs},
                       {"problems_that_differ", tally.wrong}});
  }
  return {{"version", version()},
          {"device", device_},
          {"driver", driver_},
          {"kernels", kernels},
          {"shapes", {{"all", shapes_}, {"done", shapes_done_}}},
          {"problems", problems_},
          {"outputs", outputs_},
          {"mismatches", mismatches_},
          {"failures", failures_},
          {"differences", told_},
          {"unchecked", unchecked()},
          {"stopped", stopped_},
          {"seconds", seconds()}};
}

int VerifyReport::finish() const {
  const bool right = mismatches_ == 0 && failures_ == 0 && unchecked().empty();
  clear_progress();
  if (json_) {
    fmt::print("{}\n", json_text(to_json()));
    return right ? kRight : kCheckFailed;
  }
  std::size_t forms = 0;
  for (const auto& [name, tally] : tallies_) forms += tally.problems_of_split.size();
  if (!stopped_.empty()) fmt::print("STOPPED: {}\n", stopped_);
  for (const std::string& name : unchecked()) fmt::print("NOT CHECKED: {}\n", name);
  fmt::print(
      "{} kernels ({} with their splits), {} problems, {} outputs compared bit by bit with the "
      "CPU's, {} mismatches, {:.1f} s\n{}\n",
      tallies_.size(), forms, problems_, outputs_, mismatches_, seconds(),
      !right             ? "FAILED"
      : stopped_.empty() ? "all equal"
                         : "all equal as far as it came");
  return right ? kRight : kCheckFailed;
}

}  // namespace octet::tool
