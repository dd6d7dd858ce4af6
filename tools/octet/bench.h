// `octet bench`: times problems on a device by the method of every number of this project (in
// bench_timer.h), beside their floor and beside cuBLASLt on the same operands in the same run.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "octet/octet.hpp"

namespace octet::tool {

struct BenchOptions {
  std::vector<GemmProblem> problems;
  int device = 0;
  std::string csv;      // file, or empty
  bool json = false;    // JSON on stdout instead of the table
  std::string force;    // a kernel's name or a part of it; empty: all
  int force_split = 0;  // 0: any
  int candidates = 0;   // measure so many of each problem's cheapest; 0: the planner's choice
  std::shared_ptr<const TunedTable> table;  // that its choice is made with, or null
  std::string table_file;
  bool pdl = false;  // a second arm with dependent launch, weights ready
  bool sustained = false;
  bool cublaslt = true;
  bool fast_accumulation = true;  // of cuBLASLt's per-tensor arm
  double seconds = 0;             // stop after so many; 0: never
  std::string command;            // as typed, for the record
};

// The plans of a problem that the options ask for, with their places among the candidates.
struct ChosenPlan {
  int candidate = 0;
  GemmPlan plan;
};
// Throws Error with a sentence where there is none.
std::vector<ChosenPlan> choose_plans(const BenchOptions& options, const GemmProblem& problem,
                                     const DeviceSpec& device);
std::string kernel_and_split(const GemmPlan& plan);

// The GEMMs of one decode step of a DeepSeek-V3 layer with `rows` tokens: the eight weights of the
// dense baseline (joint and separate query and key-value projections down, their projections up,
// attention output, the shared expert's and a dense layer's feed-forward).
std::vector<GemmProblem> chain_problems(int rows);

// On a device; in a build without kernels they say that there are none. They throw
// Error or DeviceError; exit codes: 0, 1 writing failed midway, 2 something was refused, 3 no
// kernels, 130 interrupted (the CSV holds what was measured until then). `run`, if not null,
// receives the record and what was measured.
struct CandidateRun;
int bench_problems(const BenchOptions& options, CandidateRun* run = nullptr);
int bench_chain(const BenchOptions& options);
int bench_host_cost(const BenchOptions& options);

// What would be timed, on a device if there is one, else planned for an H200.
int bench_dry_run(const BenchOptions& options);
// `body`, and for what it throws the exit code above, with the sentence on stderr.
int with_exit_codes(const std::function<int()>& body);
// As typed, for the record.
std::string command_line();

}  // namespace octet::tool
