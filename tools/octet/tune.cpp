// See tune.h.
#include "tune.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <stdexcept>

#include <fmt/format.h>

#include "complain.h"
#include "inputs.h"
#include "table_file.h"

namespace octet::tool {
namespace {

// The fields of a line; quotes as csv_field() sets them.
std::vector<std::string> csv_fields(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"') {
      if (quoted && i + 1 < line.size() && line[i + 1] == '"')
        fields.back() += line[++i];
      else
        quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

template <typename T>
bool read_number(const std::string& text, T& value) {
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && at == end;
}

std::string value_of(const BenchHeader& header, const std::string& key) {
  for (const auto& [k, v] : header) {
    if (k == key) return v;
  }
  return "";
}

// Header lines, or lines of choices, of a table's text.
std::string lines_of(const TunedTable& table, bool choices) {
  const std::string text = table.to_string();
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at) + 1;
    const std::string line = text.substr(at, end - at);
    if ((line.find(": kernel=") != std::string::npos) == choices) out += line;
    at = end;
  }
  return out;
}

}  // namespace

CandidateRun read_candidates(const std::string& path) {
  require_regular("--from", path);
  std::ifstream in(path);
  if (!in) throw std::runtime_error("--from " + path + ": cannot be read");
  note_input(path);
  CandidateRun run;
  std::vector<std::string> columns;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    const auto fail = [&](const std::string& want) {
      throw std::runtime_error(fmt::format("{}:{}: {}", path, number, want));
    };
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    if (line[0] == '#') {
      const std::size_t colon = line.find(": ");
      if (colon != std::string::npos && colon > 2) {
        run.header.emplace_back(line.substr(2, colon - 2), line.substr(colon + 2));
      }
      continue;
    }
    const std::vector<std::string> fields = csv_fields(line);
    if (columns.empty()) {
      columns = fields;
      for (const char* needed : {"problem", "us", "plan", "candidate"}) {
        if (std::find(columns.begin(), columns.end(), needed) == columns.end()) {
          fail(fmt::format("no column {}: must be what `octet bench --candidates N --csv` writes",
                           needed));
        }
      }
      continue;
    }
    if (fields.size() != columns.size()) {
      fail(fmt::format("{} fields: must be {}, as columns", fields.size(), columns.size()));
    }
    BenchRow row;
    const auto field = [&](const char* name) {
      return fields[static_cast<std::size_t>(std::find(columns.begin(), columns.end(), name) -
                                             columns.begin())];
    };
    row.problem = field("problem");
    row.plan = field("plan");
    double us = 0;
    int candidate = 0;
    for (const char* needed : {"us", "candidate"}) {
      if (!field(needed).empty()) continue;
      fail(
          fmt::format("column {} is empty: must be a number, as `octet bench --candidates N --csv` "
                      "writes it",
                      needed));
    }
    if (!read_number(field("us"), us) || !(us > 0)) {
      fail("us = " + field("us") + ": must be microseconds");
    }
    if (!read_number(field("candidate"), candidate)) {
      fail("candidate = " + field("candidate") + ": must be a number");
    }
    row.us = us;
    row.candidate = candidate;
    run.rows.push_back(std::move(row));
  }
  if (run.rows.empty()) throw std::runtime_error("--from " + path + ": holds no measurement");
  // The candidates of the problem in hand were not all measured.
  if (value_of(run.header, "stopped") == "interrupted") {
    const std::string last = run.rows.back().problem;
    std::erase_if(run.rows, [&](const BenchRow& row) { return row.problem == last; });
  }
  return run;
}

DeviceSpec device_of(const CandidateRun& run, const std::string& path) {
  std::string name;
  for (const BenchRow& row : run.rows) {
    const std::size_t from = row.plan.find(" @ "), to = row.plan.find(": kernel=");
    if (from == std::string::npos || to == std::string::npos || to < from + 3) {
      throw std::runtime_error("--from " + path + ": \"" + row.plan + "\" is no plan");
    }
    const std::string device = row.plan.substr(from + 3, to - from - 3);
    if (!name.empty() && device != name) {
      throw std::runtime_error("--from " + path + ": plans of " + name + " and of " + device +
                               ": must be of one device");
    }
    name = device;
  }
  for (const BenchRow& row : run.rows) {
    if (row.plan.starts_with(row.problem + " @ ")) continue;
    throw std::runtime_error("--from " + path + ": problem " + row.problem + " has the plan \"" +
                             row.plan + "\": must be a plan of that problem");
  }
  return DeviceSpec::preset(name).value();
}

std::vector<GemmPlan> fastest_plans(const std::vector<BenchRow>& rows) {
  struct Fastest {
    std::string problem;
    GemmPlan plan;
  };
  std::vector<Fastest> all;
  for (const BenchRow& row : rows) {
    if (!row.us) continue;
    auto plan = GemmPlan::parse(row.plan);
    if (!plan.ok()) {
      complain("octet: {}: left out: {}\n", row.problem, plan.message());
      continue;
    }
    GemmPlan measured = plan.value();
    measured.predicted_us = *row.us;
    const auto at = std::find_if(all.begin(), all.end(),
                                 [&](const Fastest& f) { return f.problem == row.problem; });
    if (at == all.end()) {
      all.push_back({row.problem, measured});
    } else if (measured.predicted_us < at->plan.predicted_us) {
      at->plan = measured;
    }
  }
  std::vector<GemmPlan> plans;
  for (Fastest& f : all) plans.push_back(f.plan);
  return plans;
}

void set_fastest(TunedTable& table, std::vector<GemmPlan> plans) {
  // What is set last stays.
  std::stable_sort(plans.begin(), plans.end(), [](const GemmPlan& x, const GemmPlan& y) {
    return x.predicted_us > y.predicted_us;
  });
  for (const GemmPlan& plan : plans) table.set(plan).value();
}

TunedTable empty_table(const BenchHeader& header, const DeviceSpec& device) {
  std::string text =
      fmt::format("octet tuned table 1\ndevice: {}\nsms: {}\n", device.name, device.sms);
  for (const char* key : {"gpu", "driver", "octet", "date"}) {
    std::string value = value_of(header, key);
    std::replace_if(
        value.begin(), value.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    if (!value.empty()) text += fmt::format("{}: {}\n", key, value.substr(0, 200));
  }
  return TunedTable::parse(text).value();
}

TunedTable with_header(const TunedTable& header, const TunedTable& from) {
  return TunedTable::parse(lines_of(header, false) + lines_of(from, true)).value();
}

bool is_table_of(const TunedTable& table, const DeviceSpec& device) {
  const std::string text = table.to_string();
  return text.find(fmt::format("\ndevice: {}\nsms: {}\n", device.name, device.sms)) !=
         std::string::npos;
}

}  // namespace octet::tool
