// See bench_report.h.
#include "bench_report.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench_statistics.h"
#include "check_failed.h"
#include "json_text.h"

namespace octet::tool {
namespace {

std::string number(const std::optional<double>& value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : std::string();
}

std::optional<double> ratio(const std::optional<double>& x, const std::optional<double>& y) {
  if (!x || !y || !(*y > 0)) return std::nullopt;
  return *x / *y;
}

bool is_choice(const BenchRow& row) { return row.candidate.value_or(0) == 0; }

nlohmann::json json_value(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json();
}

}  // namespace

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string csv_columns() {
  return "problem,us,floor_us,over_floor,cublaslt_us,over_cublaslt,plan,pdl_us,block_us,spread,"
         "sustained_us,cublaslt_sustained_us,cublaslt_fastest_us,candidate";
}

std::string csv_line(const BenchRow& row) {
  return fmt::format("{},{},{:.3f},{},{},{},{},{},{},{},{},{},{},{}", csv_field(row.problem),
                     number(row.us, 3), row.floor_us, number(ratio(row.us, row.floor_us), 4),
                     number(row.cublaslt_us, 3), number(ratio(row.us, row.cublaslt_us), 4),
                     csv_field(row.plan), number(row.pdl_us, 3), number(row.block_us, 3),
                     number(row.spread, 4), number(row.sustained_us, 3),
                     number(row.cublaslt_sustained_us, 3), number(row.cublaslt_fastest_us, 3),
                     row.candidate ? fmt::format("{}", *row.candidate) : std::string());
}

CsvWriter::~CsvWriter() {
  if (file_ != nullptr) std::fclose(file_);
}

bool CsvWriter::open(const std::string& path, const BenchHeader& header, std::string& why_not,
                     const std::string& columns) {
  file_ = std::fopen(path.c_str(), "w");
  if (file_ == nullptr) {
    why_not = fmt::format("--csv {}: cannot be written ({})", path, std::strerror(errno));
    return false;
  }
  path_ = path;
  for (const auto& [key, value] : header) comment(key, value);
  line(columns);
  return true;
}

// Flushed line by line, so that an interrupted run leaves whole rows.
void CsvWriter::line(const std::string& text) {
  if (file_ == nullptr) return;
  if (std::fputs((text + "\n").c_str(), file_) >= 0 && std::fflush(file_) == 0) return;
  throw CheckFailed(fmt::format("--csv {}: writing failed ({}); what was written before is in it",
                                path_, std::strerror(errno)));
}

void CsvWriter::row(const BenchRow& row) { line(csv_line(row)); }

void CsvWriter::comment(const std::string& key, const std::string& value) {
  std::string one_line = value;
  std::replace(one_line.begin(), one_line.end(), '\n', ' ');
  line("# " + key + ": " + one_line);
}

std::vector<RegimeSummary> summarize(const std::vector<BenchRow>& rows) {
  struct Ratios {
    std::vector<double> floor, cublaslt, block, pdl;
  };
  std::vector<RegimeSummary> out;
  std::vector<Ratios> ratios;
  for (const BenchRow& row : rows) {
    if (!row.us || !is_choice(row)) continue;
    auto at = std::find_if(out.begin(), out.end(),
                           [&](const RegimeSummary& s) { return s.regime == row.regime; });
    if (at == out.end()) {
      out.push_back({.regime = row.regime, .worst_problem = {}});
      ratios.emplace_back();
      at = out.end() - 1;
    }
    Ratios& r = ratios[static_cast<std::size_t>(at - out.begin())];
    const double over = *row.us / row.floor_us;
    ++at->rows;
    r.floor.push_back(over);
    if (over > at->worst_over_floor) {
      at->worst_over_floor = over;
      at->worst_problem = row.problem;
    }
    if (const auto x = ratio(row.us, row.cublaslt_us)) r.cublaslt.push_back(*x);
    if (const auto x = ratio(row.us, row.block_us)) r.block.push_back(*x);
    if (const auto x = ratio(row.pdl_us, row.floor_us)) r.pdl.push_back(*x);
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].over_floor = geometric_mean(ratios[i].floor);
    out[i].over_cublaslt = geometric_mean(ratios[i].cublaslt);
    out[i].over_block = geometric_mean(ratios[i].block);
    out[i].pdl_over_floor = geometric_mean(ratios[i].pdl);
  }
  return out;
}

ChoiceSummary summarize_choices(const std::vector<BenchRow>& rows) {
  struct Best {
    double choice = 0, fastest = 0;
  };
  std::map<std::string, Best> problems;
  for (const BenchRow& row : rows) {
    if (!row.us || !row.candidate) continue;
    Best& best = problems[row.problem];
    if (*row.candidate == 0) best.choice = *row.us;
    if (best.fastest == 0 || *row.us < best.fastest) best.fastest = *row.us;
  }
  ChoiceSummary out;
  std::vector<double> losses;
  for (const auto& [problem, best] : problems) {
    if (best.choice == 0) continue;
    losses.push_back(best.choice / best.fastest);
    if (losses.back() >= out.worst_loss) {
      out.worst_loss = losses.back();
      out.worst_problem = problem;
    }
  }
  out.problems = losses.size();
  if (!losses.empty()) out.mean_loss = geometric_mean(losses);
  return out;
}

std::string table_head() {
  return fmt::format("{:<28} {:>9} {:>9} {:>6} {:>9} {:>6} {:>9} {:>9} {:>7}  {}", "problem", "us",
                     "floor", "over", "cublaslt", "over", "block", "pdl", "spread", "kernel:split");
}

std::string table_line(const BenchRow& row) {
  std::string line =
      fmt::format("{:<28} {:>9} {:>9.2f} {:>6} {:>9} {:>6} {:>9} {:>9} {:>7}  {}", row.problem,
                  number(row.us, 2), row.floor_us, number(ratio(row.us, row.floor_us), 2),
                  number(row.cublaslt_us, 2), number(ratio(row.us, row.cublaslt_us), 2),
                  number(row.block_us, 2), number(row.pdl_us, 2),
                  row.spread ? fmt::format("{:.1f} %", 100 * *row.spread) : std::string(),
                  row.kernel);
  if (row.sustained_us) line += fmt::format("  sustained {:.2f}", *row.sustained_us);
  if (row.cublaslt_sustained_us) line += fmt::format(" / {:.2f}", *row.cublaslt_sustained_us);
  return line;
}

std::string table_summary(const std::vector<BenchRow>& rows) {
  std::string text;
  for (const RegimeSummary& s : summarize(rows)) {
    text += fmt::format("{:<26} {:>4} rows, over floor {:.3f} (worst {:.2f} {})", s.regime, s.rows,
                        s.over_floor, s.worst_over_floor, s.worst_problem);
    if (s.over_cublaslt > 0) text += fmt::format(", over cuBLASLt {:.3f}", s.over_cublaslt);
    if (s.over_block > 0) text += fmt::format(", over its block scaling {:.3f}", s.over_block);
    if (s.pdl_over_floor > 0) text += fmt::format(", dependent {:.3f}", s.pdl_over_floor);
    text += '\n';
  }
  if (const ChoiceSummary c = summarize_choices(rows); c.problems > 0) {
    text += fmt::format(
        "the planner's choice takes {:.3f} of the fastest candidate's time ({} problems, worst "
        "{:.2f} {})\n",
        c.mean_loss, c.problems, c.worst_loss, c.worst_problem);
  }
  return text;
}

std::string report_json(const BenchHeader& header, const std::vector<BenchRow>& rows) {
  nlohmann::ordered_json report;
  for (const auto& [key, value] : header) report["run"][key] = value;
  report["rows"] = nlohmann::ordered_json::array();
  for (const BenchRow& row : rows) {
    nlohmann::ordered_json x = {
        {"problem", row.problem},
        {"regime", row.regime},
        {"us", json_value(row.us)},
        {"floor_us", row.floor_us},
        {"over_floor", json_value(ratio(row.us, row.floor_us))},
        {"cublaslt_us", json_value(row.cublaslt_us)},
        {"cublaslt_fastest_us", json_value(row.cublaslt_fastest_us)},
        {"over_cublaslt", json_value(ratio(row.us, row.cublaslt_us))},
        {"plan", row.plan},
        {"pdl_us", json_value(row.pdl_us)},
        {"block_us", json_value(row.block_us)},
        {"spread", json_value(row.spread)},
        {"sustained_us", json_value(row.sustained_us)},
        {"cublaslt_sustained_us", json_value(row.cublaslt_sustained_us)},
    };
    if (row.candidate) x["candidate"] = *row.candidate;
    report["rows"].push_back(std::move(x));
  }
  report["regimes"] = nlohmann::ordered_json::array();
  for (const RegimeSummary& s : summarize(rows)) {
    report["regimes"].push_back({{"regime", s.regime},
                                 {"rows", s.rows},
                                 {"over_floor", s.over_floor},
                                 {"worst_over_floor", s.worst_over_floor},
                                 {"worst_problem", s.worst_problem},
                                 {"over_cublaslt", s.over_cublaslt},
                                 {"over_block", s.over_block},
                                 {"pdl_over_floor", s.pdl_over_floor}});
  }
  if (const ChoiceSummary c = summarize_choices(rows); c.problems > 0) {
    report["choice"] = {{"problems", c.problems},
                        {"mean_loss", c.mean_loss},
                        {"worst_loss", c.worst_loss},
                        {"worst_problem", c.worst_problem}};
  }
  return json_text(report);
}

}  // namespace octet::tool
