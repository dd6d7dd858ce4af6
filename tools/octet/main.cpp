// The command `octet`. Exit codes: 0 right, 1 a check failed, 2 bad input, 3 no usable device.
#include <exception>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "commands.h"
#include "octet/octet.hpp"

int main(int argc, char** argv) {
  using namespace octet::tool;
  CLI::App app{
      "octet: fine-grained-scaled FP8 matrix multiplication for NVIDIA Hopper, with a CPU "
      "backend of the same bits"};
  app.set_version_flag("--version", std::string("octet ") + octet::version());
  app.require_subcommand(1);
  const std::vector<Command> commands{add_bench(app), add_demo(app), add_info(app), add_plan(app)};

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11's own codes would collide with ours.
    return app.exit(error) == 0 ? kRight : kBadInput;
  }

  try {
    for (const Command& command : commands) {
      if (command.app->parsed()) return command.run();
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "octet: {}\n", error.what());
  }
  return kBadInput;
}
