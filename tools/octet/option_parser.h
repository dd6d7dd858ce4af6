// Options of a subcommand: CLI11's, behind functions that are compiled once. Its headers take seven
// seconds in every file that includes them, and what they make of each option twice that in a
// sanitized build.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace octet::tool {

// An option that was added. What it must be and how it is shown can be said in any order.
class AddedOption {
 public:
  explicit AddedOption(CLI::Option& option) : option_(&option) {}

  AddedOption required();
  AddedOption shows_default();   // in --help
  AddedOption value_optional();  // may stand alone
  AddedOption one_of(std::initializer_list<const char*> values);
  AddedOption one_of(std::initializer_list<int> values);
  AddedOption between(int first, int last);
  AddedOption between(double first, double last);
  AddedOption not_negative();
  AddedOption excludes(const AddedOption& other);

  bool given() const;

 private:
  CLI::Option* option_;
};

class Subcommand {
 public:
  Subcommand(CLI::App& app, const std::string& name, const std::string& what);

  // `name` without dashes is a place on the command line. `value` is as it was unless the user
  // gives it, and outlives the parser. A number must be finite, and no smaller than its type holds.
  template <typename T>  // std::string, int, double, float, std::vector<std::string>
  AddedOption add(const std::string& name, T& value, const std::string& what);
  // True when given; "!--name": false.
  void flag(const std::string& name, bool& value, const std::string& what);
  void footer(const std::string& text);

  bool given(const std::string& name) const;
  CLI::App* app() const { return app_; }

 private:
  CLI::App* app_;
};

}  // namespace octet::tool
