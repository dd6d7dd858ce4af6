// See option_parser.h.
#include "option_parser.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <type_traits>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace octet::tool {
namespace {

// CLI11 lets NaN and infinity through, and makes 0 of what is too small for the type.
template <typename T>
std::string number_of_type(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  const long double x = std::strtold(text.c_str(), &end);
  if (text.empty() || *end != 0) return fmt::format("Value {} must be a number", text);
  if (errno == 0 && !std::isfinite(x)) {
    return fmt::format("Value {} must be a finite number", text);
  }
  using Limits = std::numeric_limits<T>;
  if (std::fabs(x) > Limits::max()) {
    return fmt::format("Value {} must be at most {:.4g} in magnitude", text, Limits::max());
  }
  if (static_cast<T>(x) == 0 && (x != 0 || errno != 0)) {
    return fmt::format("Value {} must be 0 or at least {:.2g} in magnitude", text,
                       Limits::denorm_min());
  }
  return {};
}

// CLI11 reads 010 as eight and 0x10 as sixteen.
bool is_plain_decimal(const std::string& text) {
  const std::string digits = text.substr(text.rfind('-', 0) == 0 ? 1 : 0);
  return digits == "0" || (!digits.empty() && digits[0] != '0' &&
                           digits.find_first_not_of("0123456789") == std::string::npos);
}

// CLI11's check, which --help shows, with a sentence that says what is wanted: CLI11's own says of
// 1e2 that it is outside a range of whole numbers, and writes ranges of numbers in full.
template <typename T, typename Fits>
CLI::Validator says(CLI::Validator check, const Fits& fits, const std::string& want) {
  check.operation([fits, want](std::string& text) {
    T value{};
    const bool plain = !std::is_integral_v<T> || is_plain_decimal(text);
    if (plain && CLI::detail::lexical_cast(text, value) && fits(value)) return std::string();
    const bool odd = !plain && !text.empty() && (text[0] == '0' || text[0] == '+');
    return fmt::format("Value {} must be {}{}", text, want,
                       odd ? ", in decimal digits without leading zeros" : "");
  });
  return check;
}

template <typename T>
CLI::Validator in_range(T first, T last, const char* kind) {
  return says<T>(
      CLI::Range(first, last), [=](T value) { return first <= value && value <= last; },
      fmt::format("{} from {} to {}", kind, first, last));
}

// What a script's unset variable gives: no file, no name, and not "nothing was asked for".
std::string not_empty(const std::string& text) {
  return text.empty() ? "must not be empty" : std::string();
}

}  // namespace

AddedOption AddedOption::required() {
  option_->required();
  return *this;
}

AddedOption AddedOption::shows_default() {
  option_->capture_default_str();
  return *this;
}

AddedOption AddedOption::value_optional() {
  option_->expected(0, 1);
  return *this;
}

AddedOption AddedOption::one_of(std::initializer_list<const char*> values) {
  option_->check(CLI::IsMember(std::vector<std::string>(values.begin(), values.end())));
  return *this;
}

AddedOption AddedOption::one_of(std::initializer_list<int> values) {
  const std::vector<int> all(values);
  option_->check(says<int>(
      CLI::IsMember(all),
      [all](int value) { return std::find(all.begin(), all.end(), value) != all.end(); },
      fmt::format("one of {}", fmt::join(all, ", "))));
  return *this;
}

AddedOption AddedOption::between(int first, int last) {
  option_->check(in_range(first, last, "a whole number"));
  return *this;
}

AddedOption AddedOption::between(double first, double last) {
  option_->check(in_range(first, last, "a number"));
  return *this;
}

AddedOption AddedOption::not_negative() {
  option_->check(says<double>(
      CLI::NonNegativeNumber, [](double value) { return value >= 0; }, "0 or more"));
  return *this;
}

AddedOption AddedOption::excludes(const AddedOption& other) {
  option_->excludes(other.option_);
  return *this;
}

bool AddedOption::given() const { return option_->count() > 0; }

Subcommand::Subcommand(CLI::App& app, const std::string& name, const std::string& what)
    : app_(app.add_subcommand(name, what)) {}

template <typename T>
AddedOption Subcommand::add(const std::string& name, T& value, const std::string& what) {
  CLI::Option* const option = app_->add_option(name, value, what);
  if constexpr (!std::is_arithmetic_v<T>) option->check(not_empty);
  if constexpr (std::is_floating_point_v<T>) option->check(number_of_type<T>);
  return AddedOption(*option);
}
template AddedOption Subcommand::add(const std::string&, std::string&, const std::string&);
template AddedOption Subcommand::add(const std::string&, int&, const std::string&);
template AddedOption Subcommand::add(const std::string&, double&, const std::string&);
template AddedOption Subcommand::add(const std::string&, float&, const std::string&);
template AddedOption Subcommand::add(const std::string&, std::vector<std::string>&,
                                     const std::string&);

void Subcommand::flag(const std::string& name, bool& value, const std::string& what) {
  app_->add_flag(name, value, what);
}

void Subcommand::footer(const std::string& text) { app_->footer("\n" + text); }

bool Subcommand::given(const std::string& name) const { return app_->count(name) > 0; }

}  // namespace octet::tool
