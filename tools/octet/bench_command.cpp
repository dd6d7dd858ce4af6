// `octet bench`: its options, and what can be said without a device. The rest: bench.h.
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench.h"
#include "cases_file.h"
#include "commands.h"
#include "inputs.h"
#include "option_parser.h"
#include "table_file.h"

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

int run_bench(BenchRequest request) {
  BenchOptions& options = request.options;
  options.command = command_line();
  if (!request.force.empty()) parse_force(request.force, options);
  if (!options.table_file.empty()) {
    options.table = std::make_shared<TunedTable>(read_table("--table", options.table_file));
    note_input(options.table_file);
  }
  collect_problems(request);
  if (!options.csv.empty()) require_writable("--csv", options.csv);
  return with_exit_codes([&] {
    if (request.dry_run) {
      tell_unwritten("--csv", options.csv);
      return bench_dry_run(options);
    }
    if (request.chain) return bench_chain(options);
    if (request.host_cost) return bench_host_cost(options);
    return bench_problems(options);
  });
}

}  // namespace

Command add_bench(CLI::App& app) {
  Subcommand bench(app, "bench", "time problems beside their floor and cuBLASLt");
  const auto request = std::make_shared<BenchRequest>();
  BenchOptions& options = request->options;
  bench.add("problem", request->texts, "problem strings, e.g. dense_m4096n4096k7168");
  bench.add("--file", request->file, "file of problem strings, one a line");
  bench.add("--device", options.device, "number of the device, from 0")
      .between(0, 1023)
      .shows_default();
  bench.add("--csv", options.csv, "write the results here, row by row");
  bench.flag("--json", options.json, "print JSON");
  const AddedOption force =
      bench.add("--force", request->force,
                "KERNEL[:split]: the cheapest candidate of this name, or whose name holds it");
  const AddedOption candidates =
      bench
          .add("--candidates", options.candidates,
               "time the N candidates that the planner thinks cheapest, a row each")
          .between(1, 1000);
  bench.add("--table", options.table_file, "a tuned table that the planner asks first")
      .excludes(force)
      .excludes(candidates);
  bench.flag("--pdl", options.pdl,
             "a second arm as programmatic dependent launches, weights ready");
  bench.flag("--sustained", options.sustained, "two seconds without rest for large problems");
  bench.flag("!--no-cublaslt", options.cublaslt, "leave cuBLASLt out");
  bench.flag("!--no-fast-accumulation", options.fast_accumulation,
             "cuBLASLt's per-tensor arm with its slower, more accurate accumulation");
  bench.add("--seconds", options.seconds, "begin no further problem after so many").not_negative();
  const AddedOption chain =
      bench
          .add("--chain", request->chain_rows,
               "the GEMMs of a decode step with so many tokens (16), one after "
               "another in one graph")
          .value_optional()
          .between(1, 1 << 20);
  bench.flag("--host-cost", request->host_cost,
             "what calls cost on the host, beside a bare launch of the same kernel");
  bench.flag("--dry-run", request->dry_run, "say what would be timed; writes no file");
  bench.footer(
      "Operands come from DRAM, the floor is what a perfect kernel would take: docs/benchmark.md.\n"
      "\nExamples:\n"
      "  octet bench dense_m16n7168k2048 dense_m4096n4096k7168\n"
      "  octet bench --file cases/dense.txt --csv dense.csv\n"
      "  octet bench dense_m64n7168k2048 --candidates 4 --no-cublaslt\n"
      "  octet bench --file cases/dense.txt --dry-run      needs no device\n"
      "\nExit codes: 0 right; 1 writing failed midway (a full disk), or the device failed; 2 bad "
      "input,\nor a path that cannot be written to as given; 3 no usable device, or no kernels in "
      "this build;\n130 interrupted, with what was measured so far.\n");
  return {bench.app(), [request, chain] {
            request->chain = chain.given();
            if (request->chain_rows == 0) request->chain_rows = 16;  // --chain alone
            return run_bench(*request);
          }};
}

}  // namespace octet::tool
