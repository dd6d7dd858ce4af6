// `octet bench --host-cost`: nanoseconds that calls keep the host busy. Launches are timed in
// bursts that the driver's queue swallows, so that the host never waits for the device.
#include <algorithm>
#include <chrono>
#include <functional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench.h"
#include "bench_bare_launch.h"
#include "bench_session.h"
#include "bench_statistics.h"
#include "json_text.h"

namespace octet::tool {
namespace {

constexpr int kBurst = 128, kBursts = 101;
using Clock = std::chrono::steady_clock;

double nanoseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

// Median over the bursts of a call's mean time; `call(i)`.
double burst_ns(cudaStream_t stream, const std::function<void(int)>& call) {
  std::vector<double> bursts;
  for (int b = 0; b < kBursts; ++b) {
    const auto start = Clock::now();
    for (int i = 0; i < kBurst; ++i) call(i);
    bursts.push_back(nanoseconds_since(start) / kBurst);
    cuda_ok(cudaStreamSynchronize(stream), "waiting for a burst");
  }
  return median(bursts);
}

// Median of single calls.
double single_ns(int times, const std::function<void(int)>& call) {
  std::vector<double> each;
  for (int i = 0; i < times; ++i) {
    const auto start = Clock::now();
    call(i);
    each.push_back(nanoseconds_since(start));
  }
  return median(each);
}

void check(octet_code code) {
  if (code != OCTET_OK) Status(code).value();
}

struct HostCost {
  std::string what;
  double ns;
};

std::vector<HostCost> measure(BenchSession& session, const GemmPlan& plan,
                              const OperandSets& operands, int ordinal) {
  std::vector<HostCost> costs;
  const cudaStream_t stream = session.stream();
  const std::vector<GemmArgs>& sets = operands.args();
  const auto args = [&](int i) -> const GemmArgs& {
    return sets[static_cast<std::size_t>(i) % sets.size()];
  };
  std::vector<cuda::BoundGemm> bound = session.bind(plan, sets);
  octet_cuda_context* context = session.context().get();
  const octet_cuda_bound* first = bound.front().get();
  const BareLaunch bare(stream, [&] { session.launch(bound.front()); });

  costs.push_back({"bare launch of the same kernel (cuLaunchKernelEx)",
                   burst_ns(stream, [&](int) { bare.launch(); })});
  costs.push_back({"octet_cuda_run_bound", burst_ns(stream, [&](int) {
                     check(octet_cuda_run_bound(context, first, stream));
                   })});
  costs.push_back({"octet_cuda_run (binds and runs)", burst_ns(stream, [&](int i) {
                     check(octet_cuda_run(context, &plan, &args(i), stream));
                   })});
  costs.push_back({"octet_cuda_gemm (plan from the cache)", burst_ns(stream, [&](int i) {
                     check(octet_cuda_gemm(context, &plan.problem, &args(i), stream));
                   })});
  costs.push_back({"bind (and destroy)", burst_ns(stream, [&](int i) {
                     session.context().bind(plan, args(i)).value();
                   })});
  costs.push_back({"rebind to other pointers", burst_ns(stream, [&](int i) {
                     session.context().rebind(bound.front(), args(i)).value();
                   })});

  // Shapes that were never seen: other numbers of rows over the same memory.
  constexpr int kShapes = 64;
  std::vector<GemmProblem> shapes;
  for (int i = 0; i < kShapes; ++i) {
    GemmProblem p;
    static_cast<octet_gemm_problem&>(p) = plan.problem;
    p.m = std::max<std::int64_t>(1, p.m - i % p.m);
    p.n = std::max<std::int64_t>(64, p.n - 64 * (i + 1));
    shapes.push_back(p);
  }
  const auto shape_args = [&](const GemmProblem& p) {
    return args_of(p, layout_of(p), operands.bases(), 0, 0);
  };
  for (const GemmProblem& p : shapes) {
    session.context().prepare(plan_gemm(p, session.device()).value()).value();
  }
  costs.push_back({"plan of a new shape", single_ns(kShapes, [&](int i) {
                     plan_gemm(shapes[static_cast<std::size_t>(i)], session.device()).value();
                   })});
  costs.push_back(
      {"first call of a new shape, kernel loaded (octet_cuda_gemm)", single_ns(kShapes, [&](int i) {
         const GemmProblem& p = shapes[static_cast<std::size_t>(i)];
         const GemmArgs a = shape_args(p);
         check(octet_cuda_gemm(context, &p, &a, stream));
       })});
  cuda_ok(cudaStreamSynchronize(stream), "waiting for new shapes");

  // Kernels are loaded once for each context of the library.
  std::vector<double> create, prepare;
  for (int i = 0; i < 5; ++i) {
    auto start = Clock::now();
    cuda::Context fresh = cuda::Context::create(ordinal).value();
    create.push_back(nanoseconds_since(start));
    start = Clock::now();
    fresh.prepare(plan).value();
    prepare.push_back(nanoseconds_since(start));
  }
  costs.push_back({"a context of the library, CUDA's there", median(create)});
  costs.push_back({"prepare: first load of a kernel", median(prepare)});
  return costs;
}

}  // namespace

int bench_host_cost(const BenchOptions& options) {
  BenchOptions alone = options;
  alone.cublaslt = false;
  BenchSession session(alone);
  CsvWriter csv;
  std::string why_not;
  if (!options.csv.empty() &&
      !csv.open(options.csv, session.header(), why_not, "problem,what,ns")) {
    throw std::runtime_error(why_not);
  }
  nlohmann::ordered_json report;
  for (const auto& [key, value] : session.header()) {
    report["run"][key] = value;
    if (!options.json) fmt::print("# {}: {}\n", key, value);
  }
  for (const GemmProblem& problem : options.problems) {
    const ChosenPlan chosen = choose_plans(options, problem, session.device()).front();
    const OperandSets operands(problem, chosen.plan.workspace_bytes, session.data());
    const std::vector<HostCost> costs = measure(session, chosen.plan, operands, options.device);
    const std::string name = problem.to_string();
    if (!options.json) fmt::print("{}  {}\n", name, kernel_and_split(chosen.plan));
    for (const HostCost& cost : costs) {
      csv.line(fmt::format("{},{},{:.0f}", csv_field(name), csv_field(cost.what), cost.ns));
      report["host_ns"][name][cost.what] = cost.ns;
      if (!options.json) fmt::print("  {:<60} {:>10.0f} ns\n", cost.what, cost.ns);
    }
  }
  if (options.json) fmt::print("{}\n", json_text(report));
  return 0;
}

}  // namespace octet::tool
