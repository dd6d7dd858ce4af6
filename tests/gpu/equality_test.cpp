// Every kernel of the library against the normative model, to the bit, on the device.
//
//   equality_test [--problems N] [--seconds S] [--seed X] [--kernel SUBSTRING] [--skip-large]
//                 [--small] [--no-clusters]
//
// Each kernel is forced in turn, over every split that it serves, on random and edge problems;
// whole buffers are compared, guard bands included. Then: repeats, graph capture, streams, threads,
// SM budgets, more than 2^31 outputs. Prints what it counted; exit code 1 on the first kind of
// mismatch, 77 without a usable device. A watchdog turns a hang into a failure.
#include <map>

#include "equality_launches.h"
#include "ref/gemm.h"

namespace {

using namespace oct;
using namespace oct::test;

// The device reference against the CPU's normative loops, element for element.
void check_reference(TestBed& bed) {
  int64_t outputs = 0;
  for (int i = 0; i < 24; ++i) {
    bed.arena.reset();
    octet_gemm_problem p =
        dense_problem(1 + bed.rng() % 40, 1 + bed.rng() % 200, 1 + bed.rng() % 700);
    p.d_type = i % 3 == 0 ? OCTET_F32 : i % 3 == 1 ? OCTET_BF16 : OCTET_F16;
    p.bias_type = i % 4 == 1 ? OCTET_BF16 : i % 4 == 2 ? OCTET_F32 : OCTET_NONE;
    p.accumulate = i % 5 == 2;
    CaseOptions o;
    o.codes = static_cast<Codes>(i % 5);
    o.scales = static_cast<ScaleKind>(i % 4);
    o.special = true;
    o.seed = bed.rng();
    DeviceCase c = make_case(bed.arena, p, o, bed.stream);
    compute_reference(c, 1 + i % 7, bed.stream);
    OCT_CUDA(cudaStreamSynchronize(bed.stream));
    const auto fetch = [&](const void* data, int64_t bytes) {
      std::vector<char> host(static_cast<std::size_t>(bytes) + 16);
      if (bytes > 0)
        OCT_CUDA(
            cudaMemcpy(host.data(), data, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost));
      return host;
    };
    const int64_t element = core::size_of(p.d_type), blocks = core::ceil_div(p.k, 128);
    auto a = fetch(c.args.a.data, p.m * c.args.a.ld), b = fetch(c.args.b.data, p.n * c.args.b.ld);
    auto sfa =
        fetch(c.args.sfa.data,
              ((p.m - 1) * c.args.sfa.row_stride + (blocks - 1) * c.args.sfa.k_stride + 1) * 4);
    auto sfb = fetch(c.args.sfb.data, (((p.n + 127) / 128 - 1) * c.args.sfb.row_stride +
                                       (blocks - 1) * c.args.sfb.k_stride + 1) *
                                          4);
    auto add = fetch(c.args.c.data, p.accumulate ? p.m * c.args.c.ld * element : 0);
    auto bias =
        fetch(c.args.bias, p.bias_type == OCTET_NONE ? 0 : p.n * core::size_of(p.bias_type));
    auto want = fetch(c.reference.d, p.m * c.reference.d_ld * element);
    std::vector<char> d(want.size());
    core::DenseView v;
    v.m = p.m;
    v.n = p.n;
    v.k = p.k;
    v.a = a.data();
    v.a_ld = c.args.a.ld;
    v.b = b.data();
    v.b_ld = c.args.b.ld;
    v.sfa = {reinterpret_cast<const float*>(sfa.data()), c.args.sfa.row_stride,
             c.args.sfa.k_stride};
    v.sfb = {reinterpret_cast<const float*>(sfb.data()), c.args.sfb.row_stride,
             c.args.sfb.k_stride};
    v.d_type = p.d_type;
    v.d = d.data();
    v.d_ld = c.reference.d_ld;
    if (p.accumulate) {
      v.c = add.data();
      v.c_ld = c.args.c.ld;
    }
    v.bias_type = p.bias_type;
    if (p.bias_type != OCTET_NONE) v.bias = bias.data();
    v.split = c.reference.split;
    ref::gemm(v);
    for (int64_t m = 0; m < p.m; ++m) {
      const std::size_t at = static_cast<std::size_t>(m * v.d_ld * element);
      if (std::memcmp(&d[at], &want[at], static_cast<std::size_t>(p.n * element)) != 0) {
        std::printf("MISMATCH: device reference against CPU reference, %s, row %lld\n",
                    core::to_string(p).c_str(), static_cast<long long>(m));
        ++failures;
        break;
      }
    }
    outputs += p.m * p.n;
  }
  std::printf("device reference = CPU reference on %lld outputs of 24 problems\n",
              static_cast<long long>(outputs));
}

// Every kernel, every split.
void random_problems(TestBed& bed) {
  std::map<std::string, int64_t> runs;
  const Kernels kernels = kernels_where([&](const abi::TileConfig& tile) {
    if (tile.grouped || tile.paired) return false;  // grouped_test.cpp, wgrad_test.cpp
    return bed.options.clusters || tile.multicast() <= 1;
  });
  for (const char* kernel : kernels) {
    const abi::TileConfig tile = abi::parse_kernel(kernel);
    if (!must(context->load(kernel), kernel)) continue;
    const int64_t before = failures;
    for (int i = 0; i < bed.options.problems && bed.clock.seconds() < bed.options.seconds; ++i) {
      bed.arena.reset();
      octet_gemm_problem p = random_problem(bed.rng, tile, i, bed.options.small);
      int split = tile.sequential ? 1 + static_cast<int>(bed.rng() % 12)
                                  : tile.k_groups * (1 + static_cast<int>(bed.rng() % 8));
      if (!tile.sequential && (!bed.options.clusters || tile.multicast() > 1 ||
                               !tile.splits_over_cluster() || bed.rng() % 3 == 0))
        split = tile.k_groups;
      const octet_device_spec& device = context->device_spec();
      for (int t = 0; t < 8 && !plan::serves(tile, p, device, split).ok(); ++t) {
        if (t == 3) p.k = 128 * split + 5;
        if (t == 5) p.sm_budget = 0;
        if (split > tile.k_groups) split -= tile.k_groups;
      }
      if (!plan::serves(tile, p, device, split).ok()) continue;
      DeviceCase c = make_case(bed.arena, p, random_options(bed.rng), bed.stream);
      check_case(c, plan_for(p, kernel, split), bed.stream, "random");
      ++runs[kernel];
      if (failures > before + 3) break;
    }
    if (failures != before)
      std::printf("  %s: %lld failures\n", kernel, static_cast<long long>(failures - before));
  }
  std::printf("random problems: %lld, outputs %.3e, failures %lld, %.1f s\n",
              static_cast<long long>(total_problems), double(total_outputs),
              static_cast<long long>(failures), bed.clock.seconds());
  for (const auto& [name, count] : runs) {
    if (count < bed.options.problems / 2)
      std::printf("  only %lld runs of %s\n", static_cast<long long>(count), name.c_str());
  }
}

// Large: many outputs, and more than 2^31 of them.
void large(TestBed& bed) {
  struct Large {
    const char* kernel;
    int64_t m, n, k;
  };
  for (const Large& l : {Large{"normal_m256n128", 16384, 16384, 256},
                         {"normal_m128n256_cm2", 16000, 16001, 384},
                         {"normal_m128n192", 12000, 12345, 300},
                         {"normal_m128n128_x2", 9000, 20000, 128},
                         {"swapped_w128t32_o2", 4096, 32768, 128},
                         {"normal_m256n128_cn2", 73728, 36864, 128}}) {
    if (bed.clock.seconds() > bed.options.seconds) break;
    bed.arena.reset();
    DeviceCase c = make_case(bed.arena, dense_problem(l.m, l.n, l.k), CaseOptions{}, bed.stream);
    must(context->load(l.kernel), l.kernel);
    check_case(c, plan_for(c.problem, l.kernel, 1), bed.stream, "large");
  }
  std::printf("large: failures %lld, %.1f s\n", static_cast<long long>(failures),
              bed.clock.seconds());
}

// The last line. Returns the exit code.
int verdict(const TestBed& bed) {
  std::printf("%s: %lld problems compared, %lld launches, %.4e outputs, %lld failures, %.1f s\n",
              failures ? "FAILED" : "PASSED", static_cast<long long>(total_problems),
              static_cast<long long>(total_runs), double(total_outputs),
              static_cast<long long>(failures), bed.clock.seconds());
  return failures ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options{.problems = 60, .seconds = 300};
  parse(argc, argv,
        {"--problems", "--seconds", "--seed", "--kernel", "--skip-large", "--small",
         "--no-clusters"},
        options);
  only_kernel = options.kernel;
  const cudaStream_t stream = open_device(static_cast<unsigned>(options.seconds) + 120);
  std::printf("%s, driver %d, %d kernels\n", context->device_name(), context->driver_version(),
              abi::kKernelCount);
  OCT_CUDA(cudaMalloc(reinterpret_cast<void**>(&result), 16));
  cudaStream_t other;
  OCT_CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  TestBed bed{.clock = {},
              .options = options,
              .arena = Arena(std::size_t{options.small ? 256u : 24u << 10} << 20),
              .stream = stream,
              .other = other,
              .rng = std::mt19937_64(options.seed)};
  check_reference(bed);
  random_problems(bed);
  if (failures > 0) return 1;
  if (options.small) return verdict(bed);
  long_k(bed);
  budgets(bed);
  repeats(bed);
  capture_and_replay(bed);
  streams_and_threads(bed);
  if (options.large) large(bed);
  return verdict(bed);
}
