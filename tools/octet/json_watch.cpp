// See json_watch.h.
#include "json_watch.h"

#include <array>
#include <cstdint>
#include <limits>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tensor.h"

namespace octet::tool {
namespace {

class Watch final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Watch(const JsonSeen& seen) : seen_(seen) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t& text) override {
    if (seen_.long_integer && text.find_first_of(".eE") == text.npos) seen_.long_integer(text);
    return true;
  }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override {
    if (!deeper()) return false;
    if (seen_.object) seen_.object(level_);
    return true;
  }
  bool key(string_t& name) override {
    if (seen_.key) seen_.key(level_, name);
    return true;
  }
  bool end_object() override { return --level_, true; }
  bool start_array(std::size_t) override { return deeper(); }
  bool end_array() override { return --level_, true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override {
    return false;
  }

  bool too_deep = false;

 private:
  bool deeper() {
    too_deep = ++level_ > kDeepestJson;
    return !too_deep;
  }

  const JsonSeen& seen_;
  int level_ = 0;
};

}  // namespace

bool json_is_shallow(const char* first, const char* last, const JsonSeen& seen) {
  Watch watch(seen);
  nlohmann::json::sax_parse(first, last, &watch);
  return !watch.too_deep;
}

std::string json_fault(const char* first, const char* last) {
  std::array<std::set<std::string>, kDeepestJson> names;  // of the objects that are open
  std::string fault;                                      // the first
  JsonSeen seen;
  seen.object = [&](int level) { names[static_cast<std::size_t>(level - 1)].clear(); };
  seen.key = [&](int level, const std::string& name) {
    if (names[static_cast<std::size_t>(level - 1)].insert(name).second || !fault.empty()) return;
    fault = fmt::format("has \"{}\" twice in one object: must have it once", printable(name));
  };
  seen.long_integer = [&](const std::string& digits) {
    if (!fault.empty()) return;
    fault = fmt::format("has the integer {}: must be from {} to {}", printable(digits),
                        std::numeric_limits<int64_t>::min(), std::numeric_limits<uint64_t>::max());
  };
  if (!json_is_shallow(first, last, seen)) {
    return fmt::format("nests deeper than {} levels", kDeepestJson);
  }
  return fault;
}

}  // namespace octet::tool
