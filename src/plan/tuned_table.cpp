// See tuned_table.h: what a table decides.
#include "plan/tuned_table.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "core/refusals.h"
#include "plan/candidates.h"
#include "plan/device_presets.h"
#include "plan/invariant_split.h"
#include "plan/planner.h"

namespace oct::plan {
namespace {

using core::refuse;
using core::Rule;

bool is_of(const TableView& table, const octet_device_spec& device) {
  return table.device == device_name(device) && table.sms == device.sms;
}

std::string_view kernel_of(const TunedEntry& entry) {
  return {entry.kernel, strnlen(entry.kernel, sizeof entry.kernel)};
}

// Why the entry is passed over for a problem of its key.
std::optional<Rule> objection_to(const TunedEntry& entry, const octet_device_spec& device) {
  const int kernel = kernel_index(kernel_of(entry));
  if (kernel < 0) return Rule::kPlanMismatch;
  const abi::TileConfig& tile = kKernelFacts[static_cast<std::size_t>(kernel)].tile;
  if (const auto no = objection(tile, entry.problem, device, entry.split)) return no;
  const int cluster = make_geometry(tile, entry.problem, entry.split, entry.ctas).cluster;
  const bool whole = entry.ctas >= cluster && entry.ctas % cluster == 0 &&
                     entry.ctas <= most_ctas(tile, entry.problem, device, entry.split);
  return whole ? std::nullopt : std::optional(Rule::kEnumValue);
}

std::string why(Rule rule, const TunedEntry& entry, const octet_device_spec& device) {
  const std::string kernel(kernel_of(entry));
  if (rule == Rule::kPlanMismatch) {
    return refuse(rule, {{"got", "\"" + kernel + "\""}}).message();
  }
  const abi::TileConfig tile = abi::parse_kernel(kernel.c_str());
  if (rule != Rule::kEnumValue) return serves(tile, entry.problem, device, entry.split).message();
  const int cluster = make_geometry(tile, entry.problem, entry.split, entry.ctas).cluster;
  const int64_t most = most_ctas(tile, entry.problem, device, entry.split);
  return refuse(rule, {{"arg", "ctas"},
                       {"got", core::text(entry.ctas)},
                       {"want", fmt::format("a multiple of {0}, from {0} to {1}", cluster, most)}})
      .message();
}

}  // namespace

bool takes_tables(const octet_gemm_problem& problem) { return fixed_split(problem) == 0; }

const TunedEntry* find_tuned(const TableView& table, const octet_gemm_problem& problem,
                             const octet_device_spec& device) {
  if (table.entries.empty() || !is_of(table, device) || !takes_tables(problem)) return nullptr;
  TunedEntry wanted;
  wanted.problem = table_key(problem);
  const auto find = [&]() -> const TunedEntry* {
    const auto at =
        std::lower_bound(table.entries.begin(), table.entries.end(), wanted, entry_before);
    if (at == table.entries.end() || entry_before(wanted, *at)) return nullptr;
    return objection_to(*at, device) ? nullptr : &*at;
  };
  const TunedEntry* entry = find();
  if (entry == nullptr && wanted.problem.dependent_launch != 0) {
    wanted.problem.dependent_launch = wanted.problem.weights_ready = 0;
    entry = find();
  }
  return entry;
}

Status check_table(const TableView& table, const octet_device_spec& device) {
  if (!is_of(table, device)) {
    return refuse(Rule::kTableDevice,
                  {{"got", std::string(table.device)},
                   {"want", core::text(table.sms)},
                   {"device", fmt::format("{}, {} SMs", device_name(device), device.sms)}});
  }
  for (const TunedEntry& entry : table.entries) {
    if (const auto no = objection_to(entry, device)) {
      return refuse(Rule::kTableEntry, {{"problem", core::to_string(entry.problem)},
                                        {"kernel", std::string(kernel_of(entry))},
                                        {"split", core::text(entry.split)},
                                        {"ctas", core::text(entry.ctas)},
                                        {"why", why(*no, entry, device)}});
    }
  }
  return {};
}

Status set_entry(TunedTable& table, const octet_gemm_plan& plan) {
  if (Status s = check_plan(plan); !s.ok()) return s;
  const auto wrong = [](const char* arg, std::string got, std::string want) {
    return refuse(Rule::kEnumValue,
                  {{"arg", arg}, {"got", std::move(got)}, {"want", std::move(want)}});
  };
  if (table.device != plan.device) {
    return wrong("plan.device", printable(plan.device), printable(table.device) + ", as the table");
  }
  if (!takes_tables(plan.problem)) {
    return wrong("plan.problem", core::to_string(plan.problem),
                 "one whose split the planner chooses");
  }
  if (plan.sms < 1) return wrong("plan.sms", core::text(plan.sms), "1 or more");
  if (plan.sms > kMostCtas) {
    return wrong("plan.sms", core::text(plan.sms), core::text(kMostCtas) + " or less");
  }
  if (!(plan.predicted_us >= kLeastUs && plan.predicted_us <= kMostUs)) {
    return wrong("plan.predicted_us", fmt::format("{}", plan.predicted_us),
                 "what was measured, from 0.001 to 1e9");
  }
  TunedEntry entry;
  entry.problem = table_key(plan.problem);
  std::memcpy(entry.kernel, plan.kernel, sizeof entry.kernel);
  entry.split = plan.split;
  entry.ctas = plan.sms;
  entry.us = plan.predicted_us;
  const auto at = std::lower_bound(table.entries.begin(), table.entries.end(), entry, entry_before);
  if (at != table.entries.end() && !entry_before(entry, *at)) {
    *at = entry;
  } else {
    table.entries.insert(at, entry);
  }
  return {};
}

}  // namespace oct::plan
