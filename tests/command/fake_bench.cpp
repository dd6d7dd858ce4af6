// The made-up device's benchmark: times that the candidates' places make up, instead of times that
// are measured. The third candidate is the fastest, by a tenth; as long as nobody interrupts it.
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "bench.h"
#include "bench_floor.h"
#include "bench_report.h"
#include "fake_device.h"
#include "table_file.h"
#include "tune.h"

namespace octet::tool {

int bench_problems(const BenchOptions& options, CandidateRun* run) {
  const auto device = cuda::device_spec(options.device);
  if (!device.ok()) throw Error(OCTET_NO_DEVICE, device.message());
  if (options.table) tell_unused(*options.table, options.table_file, device.value());
  CandidateRun made;
  made.header = {{"date", "2026-11-30T00:00:00Z"},
                 {"gpu", "Fake H200"},
                 {"driver", "1.0, CUDA 13.0"},
                 {"octet", version()}};
  CsvWriter csv;
  std::string why_not;
  if (!options.csv.empty() && !csv.open(options.csv, made.header, why_not)) {
    throw std::runtime_error(why_not);
  }
  bool interrupted = false;
  for (const GemmProblem& problem : options.problems) {
    const auto plans = choose_plans(options, problem, device.value());
    for (const ChosenPlan& chosen : plans) {
      if (fake::mode() == "interrupted" && made.rows.size() == plans.size() + 1) interrupted = true;
      if (interrupted) break;
      BenchRow row;
      row.problem = problem.to_string();
      row.regime = regime_of(problem);
      row.plan = chosen.plan.to_string();
      row.kernel = kernel_and_split(chosen.plan);
      row.candidate = chosen.candidate;
      row.floor_us = floor_us(work_of(problem), problem.in_type);
      row.us = chosen.candidate == 2 ? 9.0 : 10.0 + chosen.candidate;
      fmt::print("{}\n", table_line(row));
      made.rows.push_back(row);
      csv.row(row);
    }
  }
  if (run != nullptr) *run = made;
  return interrupted ? 130 : 0;
}
int bench_chain(const BenchOptions&) { return 0; }
int bench_host_cost(const BenchOptions&) { return 0; }

}  // namespace octet::tool
