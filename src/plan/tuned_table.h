// Tuned tables: choices that were measured on a device, for problems where they are faster than
// what the cost model would choose. A table is a value that prints and parses (tuned_text.cpp,
// docs/tuned-tables.md); the planner asks it first and the model otherwise.
//
// A table speaks only for the device it was measured on, and only for problems that leave the split
// to the planner: a batch-invariant problem's split, or a given one, is never a matter of speed.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/problem.h"
#include "core/status.h"
#include "octet/octet.h"

namespace oct::plan {

struct TunedEntry {
  octet_gemm_problem problem{};  // as table_key() leaves it
  char kernel[64] = {};          // may be one that this build has not: then it is passed over
  int32_t split = 0;
  int32_t ctas = 0;  // octet_gemm_plan.sms
  double us = 0;     // measured, of one call
};

// The problem without what does not change the choice: epilogue details that cost every kernel the
// same, scale layouts, and what only tests read. A dependent launch whose weights are ready is a
// problem of its own: start and end of a kernel cost nothing there.
constexpr octet_gemm_problem table_key(octet_gemm_problem p) {
  if (p.d_type == OCTET_F16) p.d_type = OCTET_BF16;
  p.bias_type = OCTET_NONE;
  p.sfa_layout = OCTET_COLUMN_MAJOR;
  p.sfb_layout = core::default_sfb_layout(p.granularity);
  p.index_type = OCTET_I32;
  p.zero_padding = 1;
  p.dependent_launch = p.weights_ready = p.dependent_launch != 0 && p.weights_ready != 0;
  p.even = 0;
  p.seed = 0;
  return p;
}

// The order of a table's entries: by weight, then by rows.
constexpr bool entry_before(const TunedEntry& x, const TunedEntry& y) {
  const octet_gemm_problem &a = x.problem, &b = y.problem;
  if (a.grouping != b.grouping) return a.grouping < b.grouping;
  if (a.n != b.n) return a.n < b.n;
  if (a.k != b.k) return a.k < b.k;
  int order = 0;
  core::for_each_field(a, b, [&](const auto& u, const auto& v) {
    if (order == 0 && u != v) order = u < v ? -1 : 1;
  });
  return order < 0;
}

// What the planner sees of a table, wherever its entries lie.
struct TableView {
  std::string_view device;              // octet_device_spec.name
  int32_t sms = 0;                      // of that device
  std::span<const TunedEntry> entries;  // in order, no problem twice
};

struct TunedTable {
  std::string device;
  int32_t sms = 0;
  // What else the header says, for people: gpu, driver, octet, date.
  std::vector<std::pair<std::string, std::string>> notes;
  std::vector<TunedEntry> entries;
  TableView view() const { return {device, sms, entries}; }
};

// Whether a table has anything to say about a problem: its split is the planner's to choose.
bool takes_tables(const octet_gemm_problem& problem);

// The entry that decides the problem's plan on the device; null where the model has to. A dependent
// launch without an entry of its own has that of the same problem launched plainly. Allocates
// nothing.
const TunedEntry* find_tuned(const TableView& table, const octet_gemm_problem& problem,
                             const octet_device_spec& device);

// Names the first entry that find_tuned() would pass over on the device, or the table itself.
Status check_table(const TableView& table, const octet_device_spec& device);

// Adds the plan's choice, measured to take plan.predicted_us; or replaces the one of its problem.
Status set_entry(TunedTable& table, const octet_gemm_plan& plan);

std::string to_string(const TunedTable& table);
Status parse_table(std::string_view text, TunedTable& table);

inline constexpr int32_t kMostCtas = 65535;               // of an entry
inline constexpr double kLeastUs = 0.001, kMostUs = 1e9;  // of a measurement

}  // namespace oct::plan
