// The command `octet`. Exit codes: 0 right; 1 a check failed, writing failed midway, or the device
// failed; 2 bad input, or a path that cannot be written to as given; 3 no usable device; 130
// interrupted (by the signal itself, except where what was measured so far is written first).
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "commands.h"
#include "complain.h"
#include "device_memory.h"
#include "devices.h"
#include "octet/octet.hpp"
#include "tensor.h"

namespace {

using namespace octet::tool;

int run(int argc, char** argv) {
  CLI::App app{
      "octet: fine-grained-scaled FP8 matrix multiplication for NVIDIA Hopper, with a CPU "
      "backend of the same bits"};
  app.set_version_flag("--version", std::string("octet ") + octet::version());
  app.require_subcommand(1);
  const std::vector<Command> commands{add_bench(app), add_demo(app),     add_info(app),
                                      add_plan(app),  add_quantize(app), add_dequantize(app),
                                      add_gemm(app),  add_tune(app),     add_verify(app)};

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11 only says that a subcommand is missing.
    const std::string first = argc > 1 ? argv[1] : "";
    const std::string wanted = first.empty() || first[0] == '-' ? "octet" : "octet " + first;
    bool known = first.empty() || first[0] == '-';
    std::string names;
    for (const Command& command : commands) {
      names += (names.empty() ? "" : ", ") + command.app->get_name();
      known = known || command.app->get_name() == first;
    }
    if (!known) {
      complain("octet: subcommand \"{}\": must be one of {}\n", printable(first), names);
      return kBadInput;
    }
    // Of an option that is not there CLI11 says that the rest is missing.
    if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
      for (const std::string& word : app.remaining(/*recurse=*/true)) {
        if (word.size() < 2 || word[0] != '-') continue;
        complain("octet: {}: is no option of `{}`, whose --help lists them\n", printable(word),
                 wanted);
        return kBadInput;
      }
    }
    // --help and --version. CLI11's own codes would collide with ours, and it says two lines.
    if (error.get_exit_code() == 0) {
      app.exit(error);
      return kRight;
    }
    complain("octet: {}; `{} --help` says what is wanted\n", printable(error.what()), wanted);
    return kBadInput;
  }

  const auto fail = [](const std::exception& error, ExitCode code) {
    complain("octet: {}\n", error.what());
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
  } catch (const std::bad_alloc&) {
    complain("octet: out of memory\n");
    return kCheckFailed;
  } catch (const std::filesystem::filesystem_error& error) {
    complain("octet: {}: {}\n", printable(error.path1().string()), error.code().message());
    return kBadInput;
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) != 0) return kRight;  // as below
    complain("octet: the system refuses a thread, or what else is needed: {}\n",
             error.code().message());
    return kCheckFailed;
  } catch (const std::exception& error) {
    if (std::ferror(stdout) != 0) return kRight;  // main() says that the output is lost
    return fail(error, kBadInput);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int code = run(argc, argv);
  // What was printed may have gone nowhere: a full disk, a closed descriptor.
  std::cout.flush();
  const bool lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout;
  if (!lost || code != kRight) return code;
  complain("octet: standard output could not be written\n");
  return kCheckFailed;
}
