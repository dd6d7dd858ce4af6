// The command `octet`. Exit codes: 0 right, 1 a check failed, 2 bad input, 3 no usable device.
#include <exception>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "commands.h"
#include "device_memory.h"
#include "devices.h"
#include "octet/octet.hpp"

int main(int argc, char** argv) {
  using namespace octet::tool;
  CLI::App app{
      "octet: fine-grained-scaled FP8 matrix multiplication for NVIDIA Hopper, with a CPU "
      "backend of the same bits"};
  app.set_version_flag("--version", std::string("octet ") + octet::version());
  app.require_subcommand(1);
  const std::vector<Command> commands{add_bench(app), add_demo(app), add_info(app), add_plan(app),
                                      add_verify(app)};

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11's own codes would collide with ours.
    return app.exit(error) == 0 ? kRight : kBadInput;
  }

  const auto fail = [](const std::exception& error, ExitCode code) {
    fmt::print(stderr, "octet: {}\n", error.what());
    return code;
  };
  try {
    for (const Command& command : commands) {
      if (command.app->parsed()) return command.run();
    }
    return kBadInput;
  } catch (const NoDevice& error) {
    return fail(error, kNoDevice);
  } catch (const CheckFailed& error) {
    return fail(error, kCheckFailed);
  } catch (const DeviceError& error) {
    return fail(error, kCheckFailed);
  } catch (const octet::Error& error) {
    const bool device = error.code() == OCTET_DEVICE_ERROR || error.code() == OCTET_OUT_OF_MEMORY;
    return fail(error, device ? kCheckFailed : kBadInput);
  } catch (const std::exception& error) {
    return fail(error, kBadInput);
  }
}
