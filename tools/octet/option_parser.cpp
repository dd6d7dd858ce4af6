// See option_parser.h.
#include "option_parser.h"

#include <cmath>
#include <exception>
#include <type_traits>

#include <CLI/CLI.hpp>

namespace octet::tool {
namespace {

// CLI11's ranges let NaN through.
std::string finite_number(const std::string& text) {
  try {
    if (std::isfinite(std::stod(text))) return {};
  } catch (const std::exception&) {
  }
  return "Value " + text + " must be a number";
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
  option_->check(CLI::IsMember(std::vector<int>(values)));
  return *this;
}

AddedOption AddedOption::between(int first, int last) {
  option_->check(CLI::Range(first, last));
  return *this;
}

AddedOption AddedOption::between(double first, double last) {
  option_->check(CLI::Range(first, last));
  return *this;
}

AddedOption AddedOption::finite() {
  option_->check(finite_number);
  return *this;
}

AddedOption AddedOption::not_negative() {
  option_->check(CLI::NonNegativeNumber);
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
