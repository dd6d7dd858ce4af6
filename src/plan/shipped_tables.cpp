// See shipped_tables.h.
#include "plan/shipped_tables.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "plan/device_presets.h"

namespace oct::plan {
namespace {

// A line of a table. All that ship so far are of dense problems with defaults; the build refuses
// others.
struct Row {
  int64_t m, n, k;
  const char* kernel;
  int32_t split, ctas;
  double us;
  int32_t dependent;  // 1: a dependent launch, weights ready
};

template <std::size_t kCount>
constexpr std::array<TunedEntry, kCount> entries_of(const Row (&rows)[kCount]) {
  std::array<TunedEntry, kCount> entries{};
  for (std::size_t i = 0; i < kCount; ++i) {
    TunedEntry& e = entries[i];
    e.problem = core::default_problem();
    e.problem.m = rows[i].m;
    e.problem.n = rows[i].n;
    e.problem.k = rows[i].k;
    e.problem.dependent_launch = e.problem.weights_ready = rows[i].dependent;
    for (std::size_t c = 0; rows[i].kernel[c] != 0; ++c) e.kernel[c] = rows[i].kernel[c];
    e.split = rows[i].split;
    e.ctas = rows[i].ctas;
    e.us = rows[i].us;
  }
  return entries;
}

template <std::size_t kCount>
constexpr bool in_order(const std::array<TunedEntry, kCount>& entries) {
  for (std::size_t i = 1; i < kCount; ++i) {
    if (!entry_before(entries[i - 1], entries[i])) return false;
  }
  return true;
}

constexpr Row kH200Rows[] = {
#include "plan/shipped_h200.inc"
};
constexpr auto kH200 = entries_of(kH200Rows);
static_assert(in_order(kH200), "tables/h200.txt must be as `octet tune` writes it");

constexpr int32_t kH200Sms = 132;

}  // namespace

TableView shipped_table(const octet_device_spec& device) {
  if (device_name(device) == "h200") return {"h200", kH200Sms, kH200};
  return {};
}

}  // namespace oct::plan
