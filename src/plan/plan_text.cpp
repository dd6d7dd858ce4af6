// The plan as text and back:
//   PROBLEM @ DEVICE: kernel=NAME split=N [sms=N workspace=N us=X]
// The last three are left out where all are 0, as on the CPU. One line that names a computation
// entirely: with the inputs it determines every bit of the result.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "core/problem.h"
#include "core/refusals.h"
#include "plan/device_presets.h"
#include "plan/invariant_split.h"
#include "plan/kernel_facts.h"
#include "plan/planner.h"

namespace oct::plan {
namespace {

using core::refuse;
using core::Rule;

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Status parse(octet_gemm_plan& out) {
    octet_gemm_plan plan{};
    plan.struct_size = sizeof plan;
    const std::size_t end = text_.find(" @ ");
    if (end == std::string_view::npos) return fail("expected PROBLEM @ DEVICE: ...");
    if (Status s = core::parse_problem(text_.substr(0, end), plan.problem); !s.ok()) return s;
    at_ = end + 3;
    if (Status s = word(':', plan.device, sizeof plan.device, "the device's name"); !s.ok()) {
      return s;
    }
    if (Status s = literal(": kernel="); !s.ok()) return s;
    if (Status s = word(' ', plan.kernel, sizeof plan.kernel, "the kernel's name"); !s.ok()) {
      return s;
    }
    if (Status s = field(" split=", plan.split); !s.ok()) return s;
    if (at_ != text_.size()) {
      if (Status s = field(" sms=", plan.sms); !s.ok()) return s;
      if (Status s = field(" workspace=", plan.workspace_bytes); !s.ok()) return s;
      if (Status s = field(" us=", plan.predicted_us); !s.ok()) return s;
    }
    if (at_ != text_.size()) return fail("expected the end");
    if (Status s = check_plan(plan); !s.ok()) return s;
    out = plan;
    return {};
  }

 private:
  Status fail(std::string want) const {
    return refuse(Rule::kPlanString,
                  {{"got", core::text(static_cast<int64_t>(at_))}, {"want", std::move(want)}});
  }

  Status literal(std::string_view expected) {
    if (!text_.substr(at_).starts_with(expected)) {
      return fail(fmt::format("expected {}", expected.substr(expected.find_first_not_of(' '))));
    }
    at_ += expected.size();
    return {};
  }

  Status word(char stop, char* to, std::size_t room, const char* what) {
    const std::size_t end = std::min(text_.find(stop, at_), text_.size());
    if (end == at_ || end - at_ >= room) {
      return fail(fmt::format("expected {}, 1 to {} characters", what, room - 1));
    }
    const std::string_view name = text_.substr(at_, end - at_);
    if (!is_plain_name(name)) {
      return fail(fmt::format("expected {} of letters, digits, _ - and .", what));
    }
    std::memcpy(to, name.data(), name.size());
    at_ = end;
    return {};
  }

  template <typename T>
  Status field(std::string_view name, T& value) {
    if (Status s = literal(name); !s.ok()) return s;
    const auto digit = [&](std::size_t i) {
      return i < text_.size() && text_[i] >= '0' && text_[i] <= '9';
    };
    if (!digit(at_)) return fail("expected a number");  // no sign, inf or nan
    if (text_[at_] == '0' && digit(at_ + 1)) return fail("expected a number without leading zeros");
    const char* first = text_.data() + at_;
    const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), value);
    if (error != std::errc{} || end == first) return fail("expected a number");
    at_ += static_cast<std::size_t>(end - first);
    return {};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

namespace {

template <std::size_t kRoom>
std::string_view bounded(const char (&name)[kRoom]) {
  return {name, strnlen(name, kRoom)};
}

}  // namespace

Status check_plan(const octet_gemm_plan& plan) {
  if (plan.struct_size != sizeof plan) {
    return refuse(Rule::kStructSize, {{"arg", "plan"},
                                      {"got", core::text(plan.struct_size)},
                                      {"want", core::text(sizeof plan)},
                                      {"init", "octet_plan_gemm"}});
  }
  if (Status s = core::check_problem(plan.problem); !s.ok()) return s;
  if (plan.split < 1 || plan.split > core::kMaxSplit) {
    return refuse(Rule::kPlanSplit,
                  {{"got", core::text(plan.split)}, {"want", core::text(core::kMaxSplit)}});
  }
  if (const int fixed = fixed_split(plan.problem); fixed > 0 && plan.split != fixed) {
    return refuse(Rule::kPlanContradiction,
                  {{"got", core::text(plan.split)},
                   {"want", core::text(fixed)},
                   {"why", plan.problem.split > 0 ? "split" : "batch_invariant"}});
  }
  const std::string_view device = bounded(plan.device), kernel = bounded(plan.kernel);
  if (device.empty() || device.size() == sizeof plan.device || !is_plain_name(device)) {
    return refuse(Rule::kEnumValue,
                  {{"arg", "plan.device"},
                   {"got", printable(device)},
                   {"want", "1 to 31 letters, digits, _ - or ., and a terminating zero"}});
  }
  const bool cpu = kernel == kCpuName;
  if (!cpu && kernel_index(kernel) < 0) {
    return refuse(Rule::kPlanMismatch, {{"got", printable(kernel)}});
  }
  if (cpu != (device == kCpuName)) {
    return refuse(Rule::kPlanDevice,
                  {{"device", std::string(device)}, {"kernel", std::string(kernel)}});
  }
  if (plan.sms < 0) {
    return refuse(Rule::kNegative, {{"arg", "plan.sms"}, {"got", core::text(plan.sms)}});
  }
  if (plan.workspace_bytes < 0) {
    return refuse(Rule::kNegative,
                  {{"arg", "plan.workspace_bytes"}, {"got", core::text(plan.workspace_bytes)}});
  }
  if (!std::isfinite(plan.predicted_us) || std::signbit(plan.predicted_us)) {
    return refuse(Rule::kEnumValue, {{"arg", "plan.predicted_us"},
                                     {"got", fmt::format("{}", plan.predicted_us)},
                                     {"want", "finite and 0 or more"}});
  }
  return {};
}

std::string to_string(const octet_gemm_plan& plan) {
  std::string text = fmt::format("{} @ {}: kernel={} split={}", core::to_string(plan.problem),
                                 bounded(plan.device), bounded(plan.kernel), plan.split);
  if (plan.sms != 0 || plan.workspace_bytes != 0 || plan.predicted_us != 0) {
    text += fmt::format(" sms={} workspace={} us={}", plan.sms, plan.workspace_bytes,
                        plan.predicted_us);
  }
  return text;
}

Status parse_plan(std::string_view text, octet_gemm_plan& plan) { return Reader(text).parse(plan); }

bool equal(const octet_gemm_plan& x, const octet_gemm_plan& y) {
  return core::equal(x.problem, y.problem) && x.split == y.split && x.sms == y.sms &&
         std::strncmp(x.device, y.device, sizeof x.device) == 0 &&
         std::strncmp(x.kernel, y.kernel, sizeof x.kernel) == 0 &&
         x.workspace_bytes == y.workspace_bytes &&
         std::bit_cast<uint64_t>(x.predicted_us) == std::bit_cast<uint64_t>(y.predicted_us);
}

}  // namespace oct::plan
