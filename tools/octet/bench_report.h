// What a benchmark run says: one CSV row for each measurement, written as it comes, a table for
// people, and summaries by regime. Knows nothing of devices.
#pragma once

#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "octet/octet.h"

namespace octet::tool {

// A measurement; times in microseconds a call, empty where the arm does not exist.
struct BenchRow {
  std::string problem;
  std::string regime;
  std::optional<double> us;
  double floor_us = 0;
  std::optional<double> cublaslt_us;  // per-tensor scaling, the algorithm its heuristic names first
  std::optional<double> cublaslt_fastest_us;  // the fastest of the first few
  std::string plan;                           // the plan's text
  std::string kernel;                         // "name:split", for the table
  std::optional<double> pdl_us;               // with dependent launch, weights ready
  std::optional<double> block_us;             // cuBLASLt with 1x128 and 128x128 scales
  std::optional<double> spread;               // (slowest - fastest) / median of the replays of `us`
  std::optional<double> sustained_us;
  std::optional<double> cublaslt_sustained_us;
  std::optional<int> candidate;  // place among the planner's candidates
};

// `# key: value` lines before the rows.
using BenchHeader = std::vector<std::pair<std::string, std::string>>;

// The first line of the rows: the seven columns every result file has, then ours.
std::string csv_columns();
std::string csv_line(const BenchRow& row);
// A field as CSV wants it: quoted if it holds a comma, a quote or a line end.
std::string csv_field(const std::string& text);

// Writes to a file as the rows come, complete at any moment.
class CsvWriter {
 public:
  CsvWriter() = default;
  ~CsvWriter();
  CsvWriter(const CsvWriter&) = delete;
  CsvWriter& operator=(const CsvWriter&) = delete;
  // False, with a sentence, if there can be no such file. Without a call nothing is written.
  // CheckFailed, here and below, if writing fails midway.
  bool open(const std::string& path, const BenchHeader& header, std::string& why_not,
            const std::string& columns = csv_columns());
  void row(const BenchRow& row);
  void comment(const std::string& key, const std::string& value);
  void line(const std::string& text);

 private:
  std::FILE* file_ = nullptr;
  std::string path_;
};

struct RegimeSummary {
  std::string regime;
  std::size_t rows = 0;
  double over_floor = 0;        // geometric mean
  double worst_over_floor = 0;  // and its problem
  std::string worst_problem;
  double over_cublaslt = 0;  // geometric means; 0 where the arm does not exist
  double over_block = 0;
  double pdl_over_floor = 0;
};
// In order of first appearance. Rows of candidates other than the first are left out.
std::vector<RegimeSummary> summarize(const std::vector<BenchRow>& rows);

// How the planner's choice (candidate 0) fares against the fastest of the candidates measured.
struct ChoiceSummary {
  std::size_t problems = 0;
  double mean_loss = 1;  // geometric mean of choice / fastest
  double worst_loss = 1;
  std::string worst_problem;
};
ChoiceSummary summarize_choices(const std::vector<BenchRow>& rows);

// Lines of the table for people.
std::string table_head();
std::string table_line(const BenchRow& row);
std::string table_summary(const std::vector<BenchRow>& rows);

// Everything as one JSON document.
std::string report_json(const BenchHeader& header, const std::vector<BenchRow>& rows);

}  // namespace octet::tool
