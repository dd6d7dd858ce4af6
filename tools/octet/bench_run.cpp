// What the commands that time problems share; see bench.h.
#include <algorithm>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench.h"
#include "bench_floor.h"
#include "bench_layout.h"
#include "commands.h"
#include "complain.h"
#include "device_memory.h"
#include "json_text.h"
#include "table_file.h"

namespace octet::tool {

std::string command_line() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  while (!text.empty() && text.back() == 0) text.pop_back();
  std::replace(text.begin(), text.end(), '\0', ' ');
  return text;
}

int bench_dry_run(const BenchOptions& options) {
  auto device = cuda::device_spec(options.device);
  if (!device.ok()) {
    device = DeviceSpec::preset("h200");
    complain("octet: there is no usable device: planned for h200\n");
  }
  if (options.table) tell_unused(*options.table, options.table_file, device.value());
  // Printed when all is planned: what is refused is said first, and alone if that is all.
  std::string table;
  int refused = 0;
  nlohmann::json report = nlohmann::json::array();
  for (const GemmProblem& problem : options.problems) {
    try {
      const OperandLayout x = layout_of(problem, /*with_metadata=*/false);
      const double floor = floor_us(work_of(problem, x.groups), problem.in_type);
      const std::int64_t bytes =
          x.a.bytes + x.b.bytes + x.sfa.bytes + x.sfb.bytes + x.c.bytes + x.d.bytes + x.bias.bytes;
      for (const ChosenPlan& chosen : choose_plans(options, problem, device.value())) {
        const auto launches = launches_for(floor, x.sets);
        if (options.json) {
          report.push_back({{"problem", problem.to_string()},
                            {"floor_us", floor},
                            {"sets", x.sets},
                            {"bytes_a_set", bytes},
                            {"launches", launches},
                            {"plan", chosen.plan.to_string()}});
          continue;
        }
        table += fmt::format("{:<32} {:>9.2f} {:>5} {:>9.2f} {:>9}  {}\n", problem.to_string(),
                             floor, x.sets, static_cast<double>(bytes) * 1e-6, launches,
                             kernel_and_split(chosen.plan));
      }
    } catch (const Error& error) {
      ++refused;
      complain("octet: {}\n", error.what());
    }
  }
  if (!report.empty()) fmt::print("{}\n", json_text(report));
  if (!table.empty()) {
    fmt::print("{:<32} {:>9} {:>5} {:>9} {:>9}  {}\n{}", "problem", "floor us", "sets", "MB a set",
               "launches", "plan", table);
  }
  return refused > 0 ? kBadInput : kRight;
}

int with_exit_codes(const std::function<int()>& body) {
  try {
    return body();
  } catch (const DeviceError& error) {
    complain("octet: {}\n", error.what());
    return kNoDevice;
  } catch (const Error& error) {
    const bool input = error.code() == OCTET_INVALID_ARGUMENT || error.code() == OCTET_UNSUPPORTED;
    complain("octet: {}\n", error.what());
    return input ? kBadInput : kNoDevice;
  }
}

}  // namespace octet::tool
