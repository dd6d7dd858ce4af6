// `octet bench --chain`: what a decode step's GEMMs take one after another, where the end of one
// and the start of the next overlap with dependent launch and cannot without.
#include <fmt/format.h>

#include "bench.h"
#include "bench_floor.h"
#include "bench_session.h"

namespace octet::tool {
namespace {

// The weights of one step are larger than any cache; three steps' worth of operands are used in
// turn all the same, so that no activations stay warm.
constexpr int kSteps = 3;

struct Link {
  GemmProblem problem;
  GemmPlan plan, dependent;    // launched plainly, and as a dependent of the link before
  std::vector<GemmArgs> args;  // one for each step
};

}  // namespace

int bench_chain(const BenchOptions& options) {
  BenchOptions alone = options;
  alone.cublaslt = false;
  BenchSession session(alone);
  std::vector<Link> links;
  std::vector<OperandSets> operands;
  operands.reserve(options.problems.size());
  double floors = 0;
  for (const GemmProblem& problem : options.problems) {
    const ChosenPlan chosen = choose_plans(options, problem, session.device()).front();
    operands.emplace_back(problem, chosen.plan.workspace_bytes, session.data());
    const std::vector<GemmArgs>& all = operands.back().args();
    const ChosenPlan dependent =
        choose_plans(options, as_dependent(problem), session.device()).front();
    links.push_back({problem, chosen.plan, dependent.plan, {all.begin(), all.begin() + kSteps}});
    floors += floor_us(work_of(problem), problem.in_type);
  }
  const auto measure = [&](bool dependent) {
    std::vector<std::vector<cuda::BoundGemm>> bound;
    for (const Link& link : links) {
      bound.push_back(session.bind(dependent ? link.dependent : link.plan, link.args));
    }
    return session.timer().measure(
        [&](int step) {
          for (const auto& link : bound)
            session.launch(link[static_cast<std::size_t>(step) % kSteps]);
        },
        kSteps, floors, false);
  };
  const Timing plain = measure(false);
  const Timing dependent = measure(true);

  BenchRow row;
  row.problem = fmt::format("chain_m{}", options.problems.front().m);
  row.regime = "decode step";
  row.us = plain.us;
  row.spread = plain.spread;
  row.pdl_us = dependent.us;
  row.floor_us = floors;
  for (const Link& link : links) {
    row.plan += (row.plan.empty() ? "" : " | ") + link.problem.to_string() + " " +
                kernel_and_split(link.plan);
  }
  if (!options.csv.empty()) {
    CsvWriter csv;
    std::string why_not;
    if (!csv.open(options.csv, session.header(), why_not)) throw std::runtime_error(why_not);
    csv.row(row);
  }
  if (options.json) {
    fmt::print("{}\n", report_json(session.header(), {row}));
    return 0;
  }
  for (const auto& [key, value] : session.header()) fmt::print("# {}: {}\n", key, value);
  for (const Link& link : links) {
    fmt::print("{:<28} floor {:>7.2f} us  {}\n", link.problem.to_string(),
               floor_us(work_of(link.problem), link.problem.in_type), kernel_and_split(link.plan));
  }
  fmt::print(
      "a step: {:.2f} us plain ({:.3f} of the floors' sum, {:.2f} us), {:.2f} us with dependent "
      "launch ({:.3f})\n",
      plain.us, plain.us / floors, floors, dependent.us, dependent.us / floors);
  return 0;
}

}  // namespace octet::tool
