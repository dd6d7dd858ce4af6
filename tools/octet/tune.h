// What `octet tune` makes of measured candidates: a tuned table. Knows no device.
#pragma once

#include <string>
#include <vector>

#include "bench_report.h"
#include "octet/octet.hpp"

namespace octet::tool {

// A run of `octet bench --candidates`: its record, a row for each candidate measured.
struct CandidateRun {
  BenchHeader header;
  std::vector<BenchRow> rows;
};

// From the CSV of such a run. Throws with a sentence that names the file and the line.
CandidateRun read_candidates(const std::string& path);

// The device that the run's plans are of, as its preset; throws where they disagree or it is none,
// or where a plan is not of its row's problem.
DeviceSpec device_of(const CandidateRun& run, const std::string& path);

// The fastest candidate of each problem, in order of first appearance; predicted_us is what was
// measured. Plans that this version refuses are told on stderr and left out.
std::vector<GemmPlan> fastest_plans(const std::vector<BenchRow>& rows);

// All of them into the table; of problems that a table does not tell apart, the fastest.
void set_fastest(TunedTable& table, std::vector<GemmPlan> plans);

// A table without choices, for the device and with the run's record in its header.
TunedTable empty_table(const BenchHeader& header, const DeviceSpec& device);

// `from`'s choices with `header`'s header: what --update keeps.
TunedTable with_header(const TunedTable& header, const TunedTable& from);

// Whether a table is of the device and as many SMs: choices of another must not join.
bool is_table_of(const TunedTable& table, const DeviceSpec& device);

}  // namespace octet::tool
