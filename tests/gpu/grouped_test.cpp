// Problems grouped over M on the device against the processor, to the bit.
//
//   grouped_test [--problems N] [--seconds S] [--seed X] [--kernel SUBSTRING] [--small]
//                [--problem STRING]
//
// Random problems of every grouping (group counts 1 to 512, sizes around every tile's height, all
// in one group, none), each with every grouped kernel; the whole buffer of D is compared, guards,
// gaps and rows without an owner included. Then bad metadata, splits, SM budgets from 1 to 132,
// 1000 repeats, and a graph whose metadata changes between replays. Exit code 1 on a mismatch, 77
// without a usable device. A watchdog turns a hang into a failure.
#include "core/check.h"
#include "device_stages.h"
#include "options.h"

namespace {

using namespace oct;
using namespace oct::test;

Kernels kernels_for(const octet_gemm_problem&, int split) {
  return kernels_where(
      [&](const abi::TileConfig& tile) { return tile.grouped && (split == 1 || tile.sequential); });
}

Kernels grouped_kernels() {
  return kernels_where([](const abi::TileConfig& tile) { return tile.grouped; });
}

void every_kernel(int count, uint64_t seed, bool spoiled, double until, Arena& arena,
                  cudaStream_t stream) {
  const char* what = spoiled ? "bad metadata" : "random problems";
  const auto make = [&](uint64_t s) { return make_grouped_case(s, spoiled); };
  random_cases(count, seed, until, what, make, [&](const GroupedCase& c) {
    const DeviceOperands device(arena, c.host, stream);
    const Kernels kernels = grouped_kernels();
    if (!kernels.empty()) {
      // What a person is told who asks what is wrong with metadata on the device.
      const octet_gemm_plan plan = plan_for(c.host.problem, kernels[0], 1);
      const Status told = context->validate(plan, device.args, stream),
                   wanted = core::validate_metadata(c.host.problem, c.host.args());
      if (told.message() != wanted.message()) {
        fail(plan, c.host, what, ("validate: " + told.message()).c_str());
      }
    }
    // A cluster does not fit a budget of one SM.
    Kernels serving = kernels;
    std::erase_if(serving, [&](const auto& kernel) {
      return c.host.problem.sm_budget > 0 &&
             c.host.problem.sm_budget < abi::parse_kernel(kernel).multicast();
    });
    run_and_compare_all(serving, 1, c.host, device, c.want, stream, what);
  });
}

constexpr const char* kFixed[] = {
    "offsets_g7m45n1000k700", "contiguous_g5m130n328k515", "aligned_g9m77n520k384_align8",
    "masked_g6m70n776k1030",  "contiguous_g40m3n72k200",   "offsets_g300m4n136k256",
};

void reports(Arena& arena, cudaStream_t stream) {
  for (const FieldReport& r : field_reports()) {
    HostOptions options;
    options.group_sizes = r.sizes;
    options.gaps = r.gaps;
    options.odd_strides = false;
    const HostCase c(parsed(r.problem.c_str()), options);
    const Bytes want = processor_result(c, 1, 0);
    const DeviceOperands device(arena, c, stream);
    ++problems;
    run_and_compare_all(grouped_kernels(), 1, c, device, want, stream, r.id);
  }
  // F12: 10,240 further rows of -1 at the end.
  for (const char* text : {"contiguous_g4m150n256k384", "contiguous_g4m150n256k384_keeppad"}) {
    HostOptions options;
    options.gaps = false;
    options.group_sizes = {150, 1, 129, 300};
    octet_gemm_problem p = parsed(text);
    p.alignment = 128;
    // A group that nobody has rows of the right kind for: its index is made -1 below.
    options.group_sizes.push_back(10240);
    p.groups = 5;
    HostCase c(p, options);
    auto* index = c.group_index.as<int32_t>();
    for (int64_t row = c.shape.a.rows - 10240; row < c.shape.a.rows; ++row) index[row] = -1;
    const Bytes want = processor_result(c, 1, 0);
    const DeviceOperands device(arena, c, stream);
    ++problems;
    run_and_compare_all(grouped_kernels(), 1, c, device, want, stream, "F12");
  }
  std::printf("field reports: %lld failures\n", static_cast<long long>(failures));
}

// One graph; rows move between groups from replay to replay.
void changed_counts(Arena& arena, cudaStream_t stream) {
  for (const char* text : {"offsets_g12m50n520k384", "masked_g12m50n520k384",
                           "aligned_g12m50n520k384", "contiguous_g12m50n520k384"}) {
    for (const char* kernel : grouped_kernels()) {
      octet_gemm_problem p = parsed(text);
      HostOptions options;
      options.gaps = false;
      options.poison = false;
      options.group_sizes.assign(12, 64);
      if (p.grouping == OCTET_MASKED) p.max_m = 200;
      HostCase c(p, options);
      const DeviceOperands device(arena, c, stream);
      changing_replays(plan_for(p, kernel, 1), c, device, 6, spoil, stream);
    }
  }
  std::printf("graphs with changing metadata: %lld failures\n", static_cast<long long>(failures));
}

}  // namespace

int main(int argc, char** argv) {
  Options options{.problems = 600, .seconds = 60};
  parse(argc, argv, {"--problems", "--seconds", "--seed", "--kernel", "--problem", "--small"},
        options);
  only_kernel = options.kernel;
  const int count = options.problems;
  const double most_seconds = options.seconds;
  const uint64_t seed = options.seed;
  const bool small = options.small;
  const cudaStream_t stream = open_device(static_cast<unsigned>(3 * most_seconds) + 120);
  std::printf("%s, %zu grouped kernels\n", context->device_name(), grouped_kernels().size());
  Arena arena(std::size_t{1} << 30);
  load(grouped_kernels());
  if (!options.problem.empty()) return one_problem(options.problem, kernels_for, arena, stream);
  every_kernel(small ? 20 : count, seed, false, most_seconds, arena, stream);
  every_kernel(small ? 10 : count / 3, seed + 1, true, most_seconds / 3, arena, stream);
  splits(kFixed, 2, 7, kernels_for, arena, stream);
  std::printf("splits: %lld failures\n", static_cast<long long>(failures));
  if (!small) {
    planned(count / 4, seed + 2, most_seconds / 4, make_grouped_case, arena, stream);
    reports(arena, stream);
    sm_counts(kFixed, kernels_for, arena, stream);
    changed_counts(arena, stream);
    repeats(kFixed, {1}, 1000, 1, kernels_for, arena, stream);
  }
  return verdict();
}
