// `octet bench PROBLEM...`: a row for each problem, or for each of its candidates.
#include <unistd.h>

#include <chrono>
#include <csignal>

#include <fmt/format.h>

#include "bench.h"
#include "bench_floor.h"
#include "bench_session.h"
#include "complain.h"
#include "table_file.h"
#include "tune.h"

namespace octet::tool {
namespace {

constexpr int kInterrupted = 130;
constexpr double kLargeUs = 50;  // floor from which a problem keeps the device at its power limit
constexpr const char* kAnchor = "dense_m4096n4096k7168";

volatile std::sig_atomic_t interrupted = 0;

// The first SIGINT ends the run after the measurement in hand, a second one at once.
void on_interrupt(int) {
  interrupted = 1;
  std::signal(SIGINT, SIG_DFL);
}

class ProblemBench {
 public:
  explicit ProblemBench(const BenchOptions& options) : options_(options), session_(options) {}

  CandidateRun take() { return {session_.header(), std::move(rows_)}; }

  int run() {
    if (options_.table) {
      tell_unused(*options_.table, options_.table_file, session_.device());
      session_.note("table", options_.table_file);
    }
    time_anchor();
    std::string why_not;
    if (!options_.csv.empty() && !csv_.open(options_.csv, session_.header(), why_not)) {
      throw std::runtime_error(why_not);
    }
    if (!options_.json) {
      for (const auto& [key, value] : session_.header()) fmt::print("# {}: {}\n", key, value);
      fmt::print("{}\n", table_head());
    }
    const auto start = std::chrono::steady_clock::now();
    const std::size_t count = options_.problems.size();
    for (std::size_t i = 0; i < count && interrupted == 0; ++i) {
      const auto spent = std::chrono::steady_clock::now() - start;
      if (options_.seconds > 0 && std::chrono::duration<double>(spent).count() > options_.seconds) {
        stopped(
            fmt::format("after --seconds {}, {} problems not timed", options_.seconds, count - i));
        break;
      }
      progress(i, options_.problems[i].to_string());
      try {
        time_problem(options_.problems[i]);
      } catch (const Error& error) {
        // What the library refuses is said and left out; a device that fails ends the run.
        if (error.code() != OCTET_UNSUPPORTED && error.code() != OCTET_INVALID_ARGUMENT &&
            error.code() != OCTET_OUT_OF_MEMORY) {
          throw;
        }
        ++refused_;
        csv_.comment("refused", error.what());
        complain("octet: {}\n", error.what());
      }
    }
    if (interrupted != 0) stopped("interrupted");
    if (options_.json) {
      fmt::print("{}\n", report_json(session_.header(), rows_));
    } else {
      fmt::print("\n{}", table_summary(rows_));
    }
    return interrupted != 0 ? kInterrupted : refused_ > 0 ? 2 : 0;
  }

 private:
  // Results of other machines and days are compared after scaling by this one.
  void time_anchor() {
    if (session_.peer() == nullptr || options_.candidates > 0) return;
    const GemmProblem anchor = GemmProblem::parse(kAnchor).value();
    const double floor = floor_us(work_of(anchor), anchor.in_type);
    const GemmPlan plan = plan_gemm(anchor, session_.device()).value();
    const OperandSets operands(anchor, plan.workspace_bytes, session_.data());
    const Timing ours = session_.measure(plan, operands, floor, false);
    const auto theirs = peer_time(anchor, operands, CublasLt::Scaling::kPerTensor, floor, false);
    if (!theirs) return;
    session_.note("anchor",
                  fmt::format("{}: {:.2f} us, cuBLASLt {:.2f} us, {:.4f} of its time", kAnchor,
                              ours.us, theirs->chosen.us, ours.us / theirs->chosen.us));
  }

  std::optional<LtTiming> peer_time(const GemmProblem& problem, const OperandSets& operands,
                                    CublasLt::Scaling scaling, double floor, bool sustained) {
    if (session_.peer() == nullptr) return std::nullopt;
    return session_.peer()->measure(problem, operands.args(), scaling, session_.timer(), floor,
                                    sustained);
  }

  void time_problem(const GemmProblem& problem) {
    const std::vector<ChosenPlan> plans = choose_plans(options_, problem, session_.device());
    std::int64_t workspace = 0;
    for (const ChosenPlan& chosen : plans) {
      workspace = std::max(workspace, chosen.plan.workspace_bytes);
    }
    const OperandSets operands(problem, workspace, session_.data());
    BenchRow base;
    base.problem = problem.to_string();
    base.regime = regime_of(problem);
    base.floor_us = floor_us(work_of(problem, operands.layout().groups), problem.in_type);
    const bool sustained = options_.sustained && base.floor_us >= kLargeUs;
    if (const auto t =
            peer_time(problem, operands, CublasLt::Scaling::kPerTensor, base.floor_us, sustained)) {
      base.cublaslt_us = t->chosen.us;
      base.cublaslt_fastest_us = t->fastest_us;
      base.cublaslt_sustained_us = t->chosen.sustained_us;
    }
    if (const auto t =
            peer_time(problem, operands, CublasLt::Scaling::kBlocks, base.floor_us, false)) {
      base.block_us = t->fastest_us;
    }
    for (const ChosenPlan& chosen : plans) {
      if (interrupted != 0) return;
      BenchRow row = base;
      row.plan = chosen.plan.to_string();
      row.kernel = kernel_and_split(chosen.plan);
      if (options_.candidates > 0) row.candidate = chosen.candidate;
      const Timing t = session_.measure(chosen.plan, operands, base.floor_us, sustained);
      row.us = t.us;
      row.spread = t.spread;
      row.sustained_us = t.sustained_us;
      if (options_.pdl) {
        row.pdl_us =
            session_.measure(dependent_of(problem, chosen), operands, base.floor_us, false).us;
      }
      csv_.row(row);
      if (!options_.json) {
        fmt::print("{}\n", table_line(row));
        std::fflush(stdout);
      }
      rows_.push_back(std::move(row));
    }
  }

  // What a dependent launch of the problem runs: its own choice, or the candidate in hand.
  GemmPlan dependent_of(const GemmProblem& problem, const ChosenPlan& chosen) const {
    if (options_.candidates == 0) {
      return choose_plans(options_, as_dependent(problem), session_.device()).front().plan;
    }
    GemmPlan plan = chosen.plan;
    plan.problem = as_dependent(plan.problem);
    return plan;
  }

  void progress(std::size_t index, const std::string& problem) const {
    const std::size_t count = options_.problems.size();
    if (isatty(STDERR_FILENO) != 0 && options_.json) {
      complain("\r[{}/{}] {:<40}", index + 1, count, problem);
    } else if (isatty(STDOUT_FILENO) == 0) {
      complain("[{}/{}] {}\n", index + 1, count, problem);
    }
  }

  void stopped(const std::string& why) {
    csv_.comment("stopped", why);
    complain("octet: stopped: {}\n", why);
  }

  const BenchOptions& options_;
  BenchSession session_;
  CsvWriter csv_;
  std::vector<BenchRow> rows_;
  int refused_ = 0;
};

}  // namespace

int bench_problems(const BenchOptions& options, CandidateRun* run) {
  std::signal(SIGINT, on_interrupt);
  ProblemBench bench(options);
  const int code = bench.run();
  if (run != nullptr) *run = bench.take();
  return code;
}

}  // namespace octet::tool
