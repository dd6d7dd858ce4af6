// The subcommands of `octet`: each adds itself and its options to the command line, in a file of
// its own, and is run if it was asked for.
#pragma once

#include <functional>

#include "check_failed.h"

namespace CLI {
class App;
}

namespace octet::tool {

enum ExitCode : int {
  kRight = 0,
  kCheckFailed = 1,  // also: writing failed midway, the device failed
  kBadInput = 2,     // also: a path that cannot be written to as given
  kNoDevice = 3,     // no usable device, or a build without kernels
};

struct Command {
  CLI::App* app;             // parsed() if the user asked for it
  std::function<int()> run;  // the exit code; may throw: one sentence of bad input
};

Command add_bench(CLI::App& app);
Command add_demo(CLI::App& app);
Command add_dequantize(CLI::App& app);
Command add_gemm(CLI::App& app);
Command add_info(CLI::App& app);
Command add_plan(CLI::App& app);
Command add_quantize(CLI::App& app);
Command add_tune(CLI::App& app);
Command add_verify(CLI::App& app);

}  // namespace octet::tool
