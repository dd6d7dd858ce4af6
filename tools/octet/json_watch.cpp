// See json_watch.h.
#include "json_watch.h"

#include <nlohmann/json.hpp>

namespace octet::tool {
namespace {

class Watch final : public nlohmann::json_sax<nlohmann::json> {
 public:
  Watch(const SeenObject& object, const SeenKey& key) : object_(object), key_(key) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override {
    if (!deeper()) return false;
    if (object_) object_(level_);
    return true;
  }
  bool key(string_t& name) override {
    if (key_) key_(level_, name);
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

  const SeenObject& object_;
  const SeenKey& key_;
  int level_ = 0;
};

}  // namespace

bool json_is_shallow(const char* first, const char* last, const SeenObject& object,
                     const SeenKey& key) {
  Watch watch(object, key);
  nlohmann::json::sax_parse(first, last, &watch);
  return !watch.too_deep;
}

}  // namespace octet::tool
