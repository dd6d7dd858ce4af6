// `octet tune`: measures the cheapest candidates of problems, by the method of `octet bench`, and
// writes the fastest of each into a tuned table (docs/tuned-tables.md).
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench.h"
#include "bench_report.h"
#include "cases_file.h"
#include "commands.h"
#include "complain.h"
#include "device_memory.h"
#include "inputs.h"
#include "json_text.h"
#include "option_parser.h"
#include "output_file.h"
#include "table_file.h"
#include "tune.h"

namespace octet::tool {
namespace {

struct TuneRequest {
  BenchOptions options;
  std::vector<std::string> texts;
  std::string file, from, output;
  bool update = false, dry_run = false;
};

// Those that leave their split to the planner; the others are told, and counted.
int collect_problems(TuneRequest& request) {
  std::vector<GemmProblem> all;
  for (const std::string& text : request.texts) all.push_back(GemmProblem::parse(text).value());
  if (!request.file.empty()) read_cases(request.file, all);
  if (all.empty()) throw std::runtime_error("tune: give problem strings, --file or --from");
  int refused = 0;
  for (const GemmProblem& problem : all) {
    if (problem.split == 0 && problem.batch_invariant == 0) {
      request.options.problems.push_back(problem);
      continue;
    }
    ++refused;
    fmt::print(stderr, "octet: {}: fixes its split, so no table decides it\n", problem.to_string());
  }
  return refused;
}

// What a problem needs to have been measured with, so that its fastest is not that of an
// interrupted half.
void drop_unfinished(std::vector<BenchRow>& rows, const BenchOptions& options,
                     const DeviceSpec& device) {
  for (const GemmProblem& problem : options.problems) {
    const std::string name = problem.to_string();
    const auto of_it = [&](const BenchRow& row) { return row.problem == name; };
    const auto measured = std::count_if(rows.begin(), rows.end(), of_it);
    if (measured > 0 &&
        measured < static_cast<std::ptrdiff_t>(choose_plans(options, problem, device).size())) {
      std::erase_if(rows, of_it);
    }
  }
}

// `before`: a table that the new choices join, or null.
void write_table(const TuneRequest& request, const CandidateRun& run, const DeviceSpec& device,
                 const TunedTable* before) {
  TunedTable table = empty_table(run.header, device);
  if (before != nullptr) table = with_header(table, *before);
  const std::vector<GemmPlan> plans = fastest_plans(run.rows);
  if (plans.empty()) throw std::runtime_error("tune: nothing was measured, so no table is written");
  int other = 0;
  set_fastest(table, plans);
  for (const GemmPlan& plan : plans) {
    GemmProblem problem;
    static_cast<octet_gemm_problem&>(problem) = plan.problem;
    const GemmPlan model = plan_candidates(problem, device, 1).value().front();
    if (kernel_and_split(model) != kernel_and_split(plan)) ++other;
  }
  // Not before: from here on Ctrl-C ends the process, while measuring it asks for what there is.
  OutputFile file(request.output);
  const std::string text = table.to_string();
  file.write_at(0, text.data(), static_cast<std::int64_t>(text.size()));
  file.commit();
  if (request.options.json) {
    // bench_problems() has printed its report; what comes from a file has none.
    if (request.from.empty()) return;
    const nlohmann::json report = {{"table", request.output},
                                   {"problems", plans.size()},
                                   {"not_the_models_choice", other}};
    fmt::print("{}\n", json_text(report));
    return;
  }
  fmt::print("{}: {} problems, for {} of them not what the cost model would choose\n",
             request.output, plans.size(), other);
}

int run_tune(TuneRequest request) {
  BenchOptions& options = request.options;
  options.cublaslt = false;
  options.command = command_line();
  int refused = 0;
  if (request.from.empty()) {
    refused = collect_problems(request);
  } else if (!request.texts.empty() || !request.file.empty() || request.dry_run) {
    throw std::runtime_error("--from makes a table of what was measured: give nothing to measure");
  }
  if (request.dry_run) {
    tell_unwritten("-o", request.output);
    tell_unwritten("--csv", options.csv);
    const int code = bench_dry_run(options);
    return refused > 0 ? kBadInput : code;
  }
  if (request.output.empty()) throw std::runtime_error("tune: give -o TABLE, the file to write");
  CandidateRun run;
  if (!request.from.empty()) run = read_candidates(request.from);
  require_writable("-o", request.output);
  if (!options.csv.empty()) {
    require_writable("--csv", options.csv);
    if (same_file(options.csv, request.output)) {
      throw std::runtime_error(fmt::format("--csv {}: must be another file than -o", options.csv));
    }
  }
  // Without kernels the driver's absence would be named, which is not what is wrong.
  if (request.from.empty() && octet_cuda_kernel_count() == 0) return bench_problems(options);
  const auto device = request.from.empty() ? cuda::device_spec(options.device).value()
                                           : device_of(run, request.from);
  std::unique_ptr<TunedTable> before;
  if (request.update && file_exists(request.output)) {
    before = std::make_unique<TunedTable>(read_table("-o", request.output));
    if (!is_table_of(*before, device)) {
      throw std::runtime_error(
          fmt::format("-o {}: must be a table of {}, {} SMs, so that --update can add to it: {}",
                      request.output, device.name, device.sms, before->check(device).message()));
    }
  }
  int code = kRight;
  if (request.from.empty()) {
    code = bench_problems(options, &run);
    drop_unfinished(run.rows, options, device);
  }
  write_table(request, run, device, before.get());
  return code != kRight ? code : refused > 0 ? kBadInput : kRight;
}

}  // namespace

Command add_tune(CLI::App& app) {
  Subcommand tune(app, "tune", "measure candidates and write a table of the fastest");
  const auto request = std::make_shared<TuneRequest>();
  BenchOptions& options = request->options;
  options.candidates = 8;
  tune.add("problem", request->texts, "problem strings, e.g. dense_m48n7168k2048");
  tune.add("--file", request->file, "file of problem strings, one a line");
  tune.add("-o,--output", request->output, "the table to write");
  tune.flag("--update", request->update, "keep the table's other choices, if there is one");
  tune.add("--candidates", options.candidates,
           "measure the N candidates that the cost model thinks cheapest")
      .between(1, 1000)
      .shows_default();
  tune.add("--device", options.device, "number of the device, from 0")
      .between(0, 1023)
      .shows_default();
  tune.add("--from", request->from, "measure nothing: take the CSV of `octet bench --candidates`");
  tune.add("--csv", options.csv, "write the measurements here, row by row");
  tune.add("--seconds", options.seconds, "begin no further problem after so many").not_negative();
  tune.flag("--json", options.json, "print JSON");
  tune.flag("--dry-run", request->dry_run, "say what would be measured; writes no file");
  tune.footer(
      "The table is for octet plan --table, octet bench --table and programs: "
      "docs/tuned-tables.md.\n"
      "\nExamples:\n"
      "  octet tune dense_m48n7168k2048 dense_m96n7168k2048 -o mine.txt\n"
      "  octet tune --file shapes.txt -o mine.txt --update --seconds 600\n"
      "  octet tune --from candidates.csv -o mine.txt       needs no device\n"
      "\nExit codes: 0 right; 1 writing failed midway (a full disk), or the device failed; 2 bad "
      "input,\nor a path that cannot be written to as given; 3 no usable device, or no kernels in "
      "this build;\n130 interrupted, with a table of what was measured so far.\n");
  return {tune.app(), [request] { return with_exit_codes([&] { return run_tune(*request); }); }};
}

}  // namespace octet::tool
