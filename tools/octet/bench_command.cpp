// `octet bench`: its options, and what can be said without a device. The rest: bench.h.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench.h"
#include "bench_floor.h"
#include "bench_layout.h"
#include "cases_file.h"
#include "commands.h"
#include "complain.h"
#include "device_memory.h"

namespace octet::tool {
namespace {

// "KERNEL" or "KERNEL:split".
void parse_force(const std::string& text, BenchOptions& options) {
  const std::size_t colon = text.rfind(':');
  options.force = text.substr(0, colon);
  if (colon == std::string::npos) return;
  const std::string split = text.substr(colon + 1);
  const bool digits =
      !split.empty() && split.size() < 4 && split.find_first_not_of("0123456789") == split.npos;
  options.force_split = digits ? std::stoi(split) : 0;
  if (options.force_split < 1) {
    throw std::runtime_error("--force " + text +
                             ": must be a kernel's name (or a part of it), or name:split");
  }
}

struct BenchRequest {
  BenchOptions options;
  std::vector<std::string> texts;
  std::string file, force;
  int chain_rows = 16;
  bool chain = false, host_cost = false, dry_run = false;
};

// As typed, for the record.
std::string command_line() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  while (!text.empty() && text.back() == 0) text.pop_back();
  std::replace(text.begin(), text.end(), '\0', ' ');
  return text;
}

void collect_problems(BenchRequest& request) {
  std::vector<GemmProblem>& problems = request.options.problems;
  for (const std::string& text : request.texts) {
    problems.push_back(GemmProblem::parse(text).value());
  }
  if (!request.file.empty()) read_cases(request.file, problems);
  if (request.chain) {
    if (!problems.empty()) {
      throw std::runtime_error("--chain times problems of its own: give none beside it");
    }
    problems = chain_problems(request.chain_rows);
  } else if (request.host_cost && problems.empty()) {
    problems.push_back(GemmProblem::parse("dense_m16n7168k2048").value());
  }
  if (problems.empty()) {
    throw std::runtime_error("bench: give problem strings, --file, --chain or --host-cost");
  }
}

// Planned for the device if there is one, else for an H200.
int dry_run(const BenchOptions& options) {
  auto device = cuda::device_spec(options.device);
  if (!device.ok()) device = DeviceSpec::preset("h200");
  if (!options.json) {
    fmt::print("{:<32} {:>9} {:>5} {:>9} {:>9}  {}\n", "problem", "floor us", "sets", "MB a set",
               "launches", "plan");
  }
  int refused = 0;
  nlohmann::json report = nlohmann::json::array();
  for (const GemmProblem& problem : options.problems) {
    try {
      const OperandLayout x = layout_of(problem);
      const double floor = floor_us(work_of(problem), problem.in_type);
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
        fmt::print("{:<32} {:>9.2f} {:>5} {:>9.2f} {:>9}  {}\n", problem.to_string(), floor, x.sets,
                   static_cast<double>(bytes) * 1e-6, launches, kernel_and_split(chosen.plan));
      }
    } catch (const Error& error) {
      ++refused;
      complain("octet: {}\n", error.what());
    }
  }
  if (options.json) fmt::print("{}\n", report.dump(2));
  return refused > 0 ? kBadInput : kRight;
}

int run_bench(BenchRequest request) {
  BenchOptions& options = request.options;
  options.command = command_line();
  if (!request.force.empty()) parse_force(request.force, options);
  collect_problems(request);
  try {
    if (request.dry_run) return dry_run(options);
    if (request.chain) return bench_chain(options);
    if (request.host_cost) return bench_host_cost(options);
    return bench_problems(options);
  } catch (const DeviceError& error) {
    complain("octet: {}\n", error.what());
    return kNoDevice;
  } catch (const Error& error) {
    const bool input = error.code() == OCTET_INVALID_ARGUMENT || error.code() == OCTET_UNSUPPORTED;
    complain("octet: {}\n", error.what());
    return input ? kBadInput : kNoDevice;
  }
}

}  // namespace

Command add_bench(CLI::App& app) {
  auto* bench = app.add_subcommand("bench", "time problems beside their floor and cuBLASLt");
  const auto request = std::make_shared<BenchRequest>();
  BenchOptions& options = request->options;
  bench->add_option("problem", request->texts, "problem strings, e.g. dense_m4096n4096k7168");
  bench->add_option("--file", request->file, "file of problem strings, one a line");
  bench->add_option("--device", options.device, "number of the device, from 0")
      ->check(CLI::Range(0, 1023))
      ->capture_default_str();
  bench->add_option("--csv", options.csv, "write the results here, row by row");
  bench->add_flag("--json", options.json, "print JSON");
  bench->add_option("--force", request->force,
                    "KERNEL[:split]: the cheapest candidate of this name, or whose name holds it");
  bench
      ->add_option("--candidates", options.candidates,
                   "time the N candidates that the planner thinks cheapest, a row each")
      ->check(CLI::Range(1, 1000));
  bench->add_flag("--pdl", options.pdl,
                  "a second arm as programmatic dependent launches, weights ready");
  bench->add_flag("--sustained", options.sustained, "two seconds without rest for large problems");
  bench->add_flag("!--no-cublaslt", options.cublaslt, "leave cuBLASLt out");
  bench->add_flag("!--no-fast-accumulation", options.fast_accumulation,
                  "cuBLASLt's per-tensor arm with its slower, more accurate accumulation");
  bench->add_option("--seconds", options.seconds, "begin no further problem after so many")
      ->check(finite_number)
      ->check(CLI::NonNegativeNumber);
  auto* chain = bench
                    ->add_option("--chain", request->chain_rows,
                                 "the GEMMs of a decode step with so many tokens (16), one after "
                                 "another in one graph")
                    ->expected(0, 1)
                    ->check(CLI::Range(1, 1 << 20));
  bench->add_flag("--host-cost", request->host_cost,
                  "what calls cost on the host, beside a bare launch of the same kernel");
  bench->add_flag("--dry-run", request->dry_run, "say what would be timed");
  return {bench, [request, chain] {
            request->chain = chain->count() > 0;
            if (request->chain_rows == 0) request->chain_rows = 16;  // --chain alone
            return run_bench(*request);
          }};
}

}  // namespace octet::tool
