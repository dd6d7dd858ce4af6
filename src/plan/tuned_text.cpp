// A tuned table as text and back; docs/tuned-tables.md tells it to users.
//
//   octet tuned table 1
//   device: h200                  required, as octet_device_spec.name
//   sms: 132                      required
//   gpu: NVIDIA H200              gpu, driver, octet, date: for people
//   PROBLEM: kernel=NAME split=N ctas=N us=X
//
// Empty lines, and lines that begin with #, say nothing. The header comes before the first problem.
#include <algorithm>
#include <charconv>
#include <cstring>

#include <fmt/format.h>

#include "core/refusals.h"
#include "plan/device_presets.h"
#include "plan/tuned_table.h"

namespace oct::plan {
namespace {

using core::refuse;
using core::Rule;

constexpr std::string_view kTitle = "octet tuned table 1";
constexpr std::string_view kNotes[] = {"gpu", "driver", "octet", "date"};
constexpr std::size_t kMostNote = 200;  // characters

class TableReader {
 public:
  explicit TableReader(std::string_view text) : rest_(text) {}

  Status parse(TunedTable& out) {
    std::string_view line;
    if (!next(line) || line != kTitle) return fail(fmt::format("expected \"{}\"", kTitle));
    while (next(line)) {
      if (line.empty() || line[0] == '#') continue;
      const std::size_t colon = line.find(": ");
      if (colon == std::string_view::npos) {
        return fail("expected KEY: VALUE or PROBLEM: kernel=...");
      }
      const std::string_view key = line.substr(0, colon), value = line.substr(colon + 2);
      // A problem's name holds a _, a key does not.
      Status s = key.find('_') == std::string_view::npos ? header(key, value) : entry(key, value);
      if (!s.ok()) return s;
    }
    if (Status s = header_is_whole(); !s.ok()) return s;
    if (Status s = sort_entries(); !s.ok()) return s;
    out = std::move(table_);
    return {};
  }

 private:
  struct Numbered {
    TunedEntry entry;
    int64_t line;
  };

  Status fail(std::string want) const { return fail_at(line_, std::move(want)); }
  static Status fail_at(int64_t line, std::string want) {
    return refuse(Rule::kTableLine, {{"got", core::text(line)}, {"want", std::move(want)}});
  }

  bool next(std::string_view& line) {
    ++line_;
    if (rest_.empty()) return false;
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    return true;
  }

  Status header_is_whole() const {
    if (table_.device.empty()) return fail("expected device: NAME before this");
    if (table_.sms == 0) return fail("expected sms: NUMBER before this");
    return {};
  }

  Status header(std::string_view key, std::string_view value) {
    if (!entries_.empty()) return fail("expected the header before the first problem");
    if (key == "device") {
      if (!table_.device.empty()) return fail("device is given twice");
      if (value.empty() || value.size() > 31 || !is_plain_name(value) || value == kCpuName) {
        return fail("expected the name of a GPU, 1 to 31 letters, digits, _ - or .");
      }
      table_.device = value;
      return {};
    }
    if (key == "sms") {
      if (table_.sms != 0) return fail("sms is given twice");
      return whole(value, 1024, "sms", table_.sms);
    }
    if (std::find(std::begin(kNotes), std::end(kNotes), key) == std::end(kNotes)) {
      return fail("expected device, sms, gpu, driver, octet or date before the colon");
    }
    for (const auto& [known, text] : table_.notes) {
      if (known == key) return fail(fmt::format("{} is given twice", key));
    }
    const bool plain =
        std::all_of(value.begin(), value.end(), [](char c) { return c >= ' ' && c <= '~'; });
    if (value.empty() || value.size() > kMostNote || !plain) {
      return fail(fmt::format("expected 1 to {} printable characters for {}", kMostNote, key));
    }
    table_.notes.emplace_back(key, value);
    return {};
  }

  Status entry(std::string_view problem, std::string_view choice) {
    if (Status s = header_is_whole(); !s.ok()) return s;
    TunedEntry e;
    octet_gemm_problem p;
    Status s = core::parse_problem(problem, p);
    if (s.ok()) s = core::check_problem(p);
    if (!s.ok()) return fail(s.message());
    if (!takes_tables(p)) return fail("expected a problem whose split the planner chooses");
    e.problem = table_key(p);
    std::string_view name, split, ctas, us;
    if (!field("kernel=", choice, name) || !field(" split=", choice, split) ||
        !field(" ctas=", choice, ctas) || !field(" us=", choice, us) || !choice.empty()) {
      return fail("expected kernel=NAME split=NUMBER ctas=NUMBER us=NUMBER after the problem");
    }
    if (name.empty() || name.size() >= sizeof e.kernel || !is_plain_name(name)) {
      return fail("expected a kernel's name, 1 to 63 letters, digits, _ - or .");
    }
    std::memcpy(e.kernel, name.data(), name.size());
    if (s = whole(split, core::kMaxSplit, "split", e.split); !s.ok()) return s;
    if (s = whole(ctas, kMostCtas, "ctas", e.ctas); !s.ok()) return s;
    const char* const end = us.data() + us.size();
    const auto [at, error] = std::from_chars(us.data(), end, e.us, std::chars_format::fixed);
    if (error != std::errc{} || at != end || !(e.us >= kLeastUs && e.us <= kMostUs)) {
      return fail("expected microseconds from 0.001 to 1e9 for us");
    }
    entries_.push_back({e, line_});
    return {};
  }

  // Takes "NAMEvalue" off the front of the text, up to the next space.
  static bool field(std::string_view name, std::string_view& text, std::string_view& value) {
    if (!text.starts_with(name)) return false;
    text.remove_prefix(name.size());
    value = text.substr(0, text.find(' '));
    text.remove_prefix(value.size());
    return true;
  }

  Status whole(std::string_view text, int32_t most, const char* what, int32_t& value) const {
    const char* const end = text.data() + text.size();
    int32_t got = 0;
    const auto [at, error] = std::from_chars(text.data(), end, got);
    if (error != std::errc{} || at != end || text[0] == '0' || got < 1 || got > most) {
      return fail(fmt::format("expected a number from 1 to {} for {}", most, what));
    }
    value = got;
    return {};
  }

  Status sort_entries() {
    std::stable_sort(entries_.begin(), entries_.end(), [](const Numbered& x, const Numbered& y) {
      return entry_before(x.entry, y.entry);
    });
    for (const Numbered& n : entries_) {
      if (!table_.entries.empty() && !entry_before(table_.entries.back(), n.entry)) {
        return fail_at(n.line, fmt::format("the choice is already given in line {} ({} stands for "
                                           "all problems that differ in nothing that decides it)",
                                           last_line_, core::to_string(n.entry.problem)));
      }
      table_.entries.push_back(n.entry);
      last_line_ = n.line;
    }
    return {};
  }

  std::string_view rest_;
  int64_t line_ = 0, last_line_ = 0;
  TunedTable table_;
  std::vector<Numbered> entries_;
};

}  // namespace

std::string to_string(const TunedTable& table) {
  std::string text = fmt::format("{}\ndevice: {}\nsms: {}\n", kTitle, table.device, table.sms);
  for (const auto& [key, value] : table.notes) text += fmt::format("{}: {}\n", key, value);
  for (const TunedEntry& e : table.entries) {
    text += fmt::format("{}: kernel={} split={} ctas={} us={:.3f}\n", core::to_string(e.problem),
                        e.kernel, e.split, e.ctas, e.us);
  }
  return text;
}

Status parse_table(std::string_view text, TunedTable& table) {
  return TableReader(text).parse(table);
}

}  // namespace oct::plan
