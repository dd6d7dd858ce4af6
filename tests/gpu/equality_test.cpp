// Every kernel of the library against the normative model, to the bit, on the device.
//
//   equality_test [--problems N] [--seconds S] [--seed X] [--kernel SUBSTRING] [--skip-large]
//   [--small] [--no-clusters]
//
// Each kernel is forced in turn, over every split that it serves, on random and edge problems;
// whole buffers are compared, guard bands included. Then: repeats, graph capture, streams, threads,
// SM budgets, more than 2^31 outputs. Prints what it counted; exit code 1 on the first kind of
// mismatch, 77 without a usable device. A watchdog turns a hang into a failure.
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/problem.h"
#include "cuda/context.h"
#include "device_case.h"
#include "kernel_abi/smem_layout.h"
#include "options.h"
#include "plan/candidates.h"
#include "random_cases.h"
#include "ref/gemm.h"

namespace {

using namespace oct;
using namespace oct::test;

std::unique_ptr<cuda::Context> context;
unsigned long long* result;  // device: [different, first]
int64_t total_problems = 0, total_outputs = 0, total_runs = 0, failures = 0;

octet_gemm_plan make_plan(const octet_gemm_problem& p, const char* kernel, int split) {
  octet_gemm_plan plan{};
  plan.struct_size = sizeof plan;
  plan.problem = p;
  plan.split = split;
  std::snprintf(plan.kernel, sizeof plan.kernel, "%s", kernel);
  std::snprintf(plan.device, sizeof plan.device, "h200");
  plan.sms = static_cast<int32_t>(
      plan::most_ctas(abi::parse_kernel(kernel), p, context->device_spec(), split));
  return plan;
}

bool must(const Status& s, const char* what) {
  if (s.ok()) return true;
  std::printf("FAILED: %s: %s\n", what, s.message().c_str());
  ++failures;
  return false;
}

// Compares the buffers of a case; prints the first difference with its coordinate, tile and both
// values.
bool same(const DeviceCase& c, const octet_gemm_plan& plan, cudaStream_t stream, const char* what) {
  unsigned long long init[2] = {0, ~0ull}, got[2];
  OCT_CUDA(cudaMemcpyAsync(result, init, sizeof init, cudaMemcpyHostToDevice, stream));
  compare_words(c.d_buffer, c.want_buffer, c.d_bytes, result, stream);
  OCT_CUDA(cudaMemcpyAsync(got, result, sizeof got, cudaMemcpyDeviceToHost, stream));
  const cudaError_t e = cudaStreamSynchronize(stream);
  if (e != cudaSuccess) {
    std::printf("FAILED: %s: %s split %d on %s: %s\n", what, plan.kernel, plan.split,
                core::to_string(plan.problem).c_str(), cudaGetErrorString(e));
    std::fflush(stdout);
    std::_Exit(1);
  }
  if (got[0] == 0) return true;
  if (++failures > 40) return false;
  uint32_t x = 0, y = 0;
  const int64_t element = core::size_of(plan.problem.d_type);
  const int64_t at = static_cast<int64_t>(got[1]) * 2 / element * element;
  OCT_CUDA(cudaMemcpy(&x, static_cast<char*>(c.d_buffer) + at, 2 + 2 * (element == 4),
                      cudaMemcpyDeviceToHost));
  OCT_CUDA(cudaMemcpy(&y, static_cast<char*>(c.want_buffer) + at, 2 + 2 * (element == 4),
                      cudaMemcpyDeviceToHost));
  const int64_t offset =
      (at - (static_cast<char*>(c.args.d.data) - static_cast<char*>(c.d_buffer))) / element;
  const int64_t ld = c.args.d.ld;
  std::printf(
      "MISMATCH: %s: %s split %d sms %d on %s: %llu words differ; first at offset %lld (row %lld, "
      "column %lld of ld %lld): got %x, want %x; sfa strides %lld %lld, d.ld %lld\n",
      what, plan.kernel, plan.split, plan.sms, core::to_string(plan.problem).c_str(), got[0],
      static_cast<long long>(offset), static_cast<long long>(offset / ld),
      static_cast<long long>(offset % ld), static_cast<long long>(ld), x, y,
      static_cast<long long>(c.args.sfa.row_stride), static_cast<long long>(c.args.sfa.k_stride),
      static_cast<long long>(ld));
  return false;
}

bool check_case(DeviceCase& c, const octet_gemm_plan& plan, cudaStream_t stream, const char* what) {
  c.poison(stream);
  c.reference.split = plan.split;
  reference_gemm(c.reference, stream);
  const Status s = context->run(plan, c.args, stream);
  if (!must(s, plan.kernel)) {
    std::printf("  (%s, split %d, %s)\n", core::to_string(plan.problem).c_str(), plan.split, what);
    return false;
  }
  ++total_problems;
  ++total_runs;
  total_outputs += plan.problem.m * plan.problem.n * plan.problem.groups;
  return same(c, plan, stream, what);
}

// The device reference against the CPU's normative loops, element for element.
void check_reference(Arena& arena, cudaStream_t stream, std::mt19937_64& rng) {
  int64_t outputs = 0;
  for (int i = 0; i < 24; ++i) {
    arena.reset();
    octet_gemm_problem p = dense_problem(1 + rng() % 40, 1 + rng() % 200, 1 + rng() % 700);
    p.d_type = i % 3 == 0 ? OCTET_F32 : i % 3 == 1 ? OCTET_BF16 : OCTET_F16;
    p.bias_type = i % 4 == 1 ? OCTET_BF16 : i % 4 == 2 ? OCTET_F32 : OCTET_NONE;
    p.accumulate = i % 5 == 2;
    CaseOptions o;
    o.codes = static_cast<Codes>(i % 5);
    o.scales = static_cast<ScaleKind>(i % 4);
    o.special = true;
    o.seed = rng();
    DeviceCase c = make_case(arena, p, o, stream);
    c.poison(stream);
    c.reference.split = 1 + i % 7;
    reference_gemm(c.reference, stream);
    OCT_CUDA(cudaStreamSynchronize(stream));
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

struct Watchdog {
  explicit Watchdog(unsigned seconds) { alarm(seconds); }
  ~Watchdog() { alarm(0); }
};

int env_exit(const Status& s) {
  std::printf("SKIPPED: %s\n", s.message().c_str());
  return 77;
}

}  // namespace

int main(int argc, char** argv) {
  Options options{.problems = 60, .seconds = 300};
  parse(argc, argv,
        {"--problems", "--seconds", "--seed", "--kernel", "--skip-large", "--small",
         "--no-clusters"},
        options);
  if (Status s = cuda::Context::create(0, context); !s.ok()) return env_exit(s);
  std::printf("%s, driver %d, %d kernels\n", context->device_name(), context->driver_version(),
              abi::kKernelCount);
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  Watchdog whole(static_cast<unsigned>(options.seconds) + 120);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  OCT_CUDA(cudaSetDevice(0));
  OCT_CUDA(cudaMalloc(reinterpret_cast<void**>(&result), 16));
  cudaStream_t stream, other;
  OCT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  OCT_CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  Arena arena(std::size_t{options.small ? 256u : 24u << 10} << 20);
  std::mt19937_64 rng(options.seed);

  check_reference(arena, stream, rng);

  // Every kernel, every split.
  std::map<std::string, int64_t> runs;
  for (const abi::KernelRow& row : abi::kKernels) {
    if (!options.kernel.empty() && std::strstr(row.name, options.kernel.c_str()) == nullptr)
      continue;
    const abi::TileConfig tile = abi::parse_kernel(row.name);
    if (tile.grouped || tile.paired) continue;  // grouped_test.cpp, wgrad_test.cpp
    if (!options.clusters && tile.multicast() > 1) continue;
    if (!must(context->load(row.name), row.name)) continue;
    const int64_t before = failures;
    for (int i = 0; i < options.problems && seconds() < options.seconds; ++i) {
      arena.reset();
      octet_gemm_problem p = random_problem(rng, tile, i, options.small);
      int split = tile.sequential ? 1 + static_cast<int>(rng() % 12)
                                  : tile.k_groups * (1 + static_cast<int>(rng() % 8));
      if (!tile.sequential && (!options.clusters || tile.multicast() > 1 ||
                               !tile.splits_over_cluster() || rng() % 3 == 0))
        split = tile.k_groups;
      const octet_device_spec& device = context->device_spec();
      for (int t = 0; t < 8 && !plan::serves(tile, p, device, split).ok(); ++t) {
        if (t == 3) p.k = 128 * split + 5;
        if (t == 5) p.sm_budget = 0;
        if (split > tile.k_groups) split -= tile.k_groups;
      }
      if (!plan::serves(tile, p, device, split).ok()) continue;
      DeviceCase c = make_case(arena, p, random_options(rng), stream);
      check_case(c, make_plan(p, row.name, split), stream, "random");
      ++runs[row.name];
      if (failures > before + 3) break;
    }
    if (failures != before)
      std::printf("  %s: %lld failures\n", row.name, static_cast<long long>(failures - before));
  }
  std::printf("random problems: %lld, outputs %.3e, failures %lld, %.1f s\n",
              static_cast<long long>(total_problems), double(total_outputs),
              static_cast<long long>(failures), seconds());
  for (const auto& [name, count] : runs) {
    if (count < options.problems / 2)
      std::printf("  only %lld runs of %s\n", static_cast<long long>(count), name.c_str());
  }
  if (failures > 0) return 1;

  const auto finish = [&] {
    std::printf("%s: %lld problems compared, %lld launches, %.4e outputs, %lld failures, %.1f s\n",
                failures ? "FAILED" : "PASSED", static_cast<long long>(total_problems),
                static_cast<long long>(total_runs), double(total_outputs),
                static_cast<long long>(failures), seconds());
    return failures ? 1 : 0;
  };
  if (options.small) return finish();

  // Every kernel and every split on long K, launched back to back.
  {
    const int64_t before = total_runs;
    for (const abi::KernelRow& row : abi::kKernels) {
      if (!options.kernel.empty() && std::strstr(row.name, options.kernel.c_str()) == nullptr)
        continue;
      const abi::TileConfig tile = abi::parse_kernel(row.name);
      arena.reset();
      const octet_gemm_problem p = dense_problem(tile.normal() ? 200 : tile.tile_m - 1, 2112, 7168);
      CaseOptions o;
      o.seed = rng();
      DeviceCase c = make_case(arena, p, o, stream);
      for (int over = 1; over <= 8; ++over) {
        const int split = tile.sequential ? 2 * over - 1 : over * tile.k_groups;
        if (!plan::serves(tile, p, context->device_spec(), split).ok()) break;
        const octet_gemm_plan plan = make_plan(p, row.name, split);
        cuda::BoundGemm bound;
        if (!must(context->bind(plan, c.args, bound), row.name)) break;
        check_case(c, plan, stream, "long K");
        for (int i = 0; i < 50; ++i) must(context->run(bound, stream), row.name);
        total_runs += 50;
        if (!same(c, plan, stream, "back to back")) break;
      }
    }
    std::printf("long K, every split: %lld runs, failures %lld, %.1f s\n",
                static_cast<long long>(total_runs - before), static_cast<long long>(failures),
                seconds());
  }

  // SM budgets 1..132 with odd numbers of tiles; 1000 repeats are spread over them.
  {
    const int64_t before = total_runs;
    for (const char* kernel :
         {"normal_m128n128_x2", "normal_m256n128_cn2", "normal_m128n192_cm2",
          "swapped_w64t16_x2_o2", "swapped_w64t16_k2_x2_b2", "normal_m128n64_seq"}) {
      const abi::TileConfig tile = abi::parse_kernel(kernel);
      for (const int over : {1, 3, 4}) {
        if (over > 1 && !tile.splits_over_cluster()) continue;
        arena.reset();
        octet_gemm_problem p = dense_problem(tile.normal() ? 700 : 16, 1700, 128 * 13 + 40);
        CaseOptions o;
        o.seed = rng();
        DeviceCase c = make_case(arena, p, o, stream);
        const int split = over * tile.k_groups;
        c.poison(stream);
        c.reference.split = split;
        reference_gemm(c.reference, stream);
        for (int sms = 1; sms <= 132; ++sms) {
          p.sm_budget = sms;
          if (!plan::serves(tile, p, context->device_spec(), split).ok()) continue;
          const octet_gemm_plan plan = make_plan(p, kernel, split);
          fill_bytes(c.d_buffer, c.d_bytes, c.poison_seed, stream);
          if (!must(context->run(plan, c.args, stream), kernel)) break;
          ++total_runs;
          if (!same(c, plan, stream, "budget")) break;
        }
      }
    }
    std::printf("budgets 1..132: %lld runs, failures %lld, %.1f s\n",
                static_cast<long long>(total_runs - before), static_cast<long long>(failures),
                seconds());
  }

  // 1000 repeats of each of several plans, no synchronisation in between; a dependent-launch chain
  // too.
  {
    struct Repeat {
      const char* kernel;
      int split, pdl;
      int64_t m, n, k;
    };
    for (const Repeat& r : {Repeat{"swapped_w64t16_x2_o2", 4, 0, 16, 2112, 7168},
                            {"swapped_w64t16_x2_o2", 8, 1, 13, 576, 7168},
                            {"normal_m128n128_x2", 2, 0, 300, 2112, 1152},
                            {"normal_m256n128_cn2", 1, 0, 777, 2112, 576},
                            {"swapped_w64t8_k2_x2_b2", 4, 1, 7, 4096, 1408},
                            {"normal_m128n256", 1, 1, 1000, 4000, 512}}) {
      arena.reset();
      octet_gemm_problem p = dense_problem(r.m, r.n, r.k);
      p.dependent_launch = r.pdl;
      p.weights_ready = r.pdl;
      CaseOptions o;
      o.seed = rng();
      DeviceCase c = make_case(arena, p, o, stream);
      const octet_gemm_plan plan = make_plan(p, r.kernel, r.split);
      c.poison(stream);
      c.reference.split = r.split;
      reference_gemm(c.reference, stream);
      cuda::BoundGemm bound;
      if (!must(context->bind(plan, c.args, bound), r.kernel)) continue;
      for (int i = 0; i < 1000; ++i) {
        if (!must(context->run(bound, stream), r.kernel)) break;
        ++total_runs;
        if (i % 100 == 99) {
          if (!same(c, plan, stream, "repeat")) break;
          fill_bytes(c.d_buffer, c.d_bytes, c.poison_seed, stream);
        }
      }
    }
    std::printf("repeats: 6 plans, 1000 times each, failures %lld, %.1f s\n",
                static_cast<long long>(failures), seconds());
  }

  // Capture and replay; an unprepared plan leaves a capture intact.
  {
    std::unique_ptr<cuda::Context> fresh;
    must(cuda::Context::create(0, fresh), "second context");
    arena.reset();
    octet_gemm_problem p = dense_problem(100, 1000, 1000);
    DeviceCase c = make_case(arena, p, CaseOptions{}, stream);
    const octet_gemm_plan plan = make_plan(p, "normal_m64n64_x2_o2", 2);
    c.poison(stream);
    c.reference.split = 2;
    reference_gemm(c.reference, stream);
    OCT_CUDA(cudaStreamSynchronize(stream));
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    OCT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    const Status unprepared = fresh->run(plan, c.args, stream);
    if (unprepared.code() != OCTET_NOT_PREPARED) {
      std::printf("FAILED: unprepared plan gave %d\n", unprepared.code());
      ++failures;
    }
    must(context->run(plan, c.args, stream), "capture");
    OCT_CUDA(cudaStreamEndCapture(stream, &graph));
    OCT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 20; ++i) {
      fill_bytes(c.d_buffer, c.d_bytes, c.poison_seed, stream);
      OCT_CUDA(cudaGraphLaunch(exec, stream));
      ++total_runs;
      if (!same(c, plan, stream, "graph")) break;
    }
    OCT_CUDA(cudaGraphExecDestroy(exec));
    OCT_CUDA(cudaGraphDestroy(graph));
    std::printf("graph: captured beside an unprepared plan, 20 replays, failures %lld\n",
                static_cast<long long>(failures));
  }

  // Two streams at once, then two host threads.
  {
    arena.reset();
    std::vector<DeviceCase> cases;
    std::vector<octet_gemm_plan> plans;
    for (int i = 0; i < 2; ++i) {
      octet_gemm_problem p = dense_problem(300 + 17 * i, 1500, 1000);
      CaseOptions o;
      o.seed = 5 + i;
      cases.push_back(make_case(arena, p, o, stream));
      plans.push_back(make_plan(p, i ? "normal_m128n96_x2" : "normal_m128n128_x2", 2));
      cases[i].poison(stream);
      cases[i].reference.split = 2;
      reference_gemm(cases[i].reference, stream);
    }
    OCT_CUDA(cudaStreamSynchronize(stream));
    for (int i = 0; i < 200; ++i) {
      must(context->run(plans[0], cases[0].args, stream), "stream 0");
      must(context->run(plans[1], cases[1].args, other), "stream 1");
      total_runs += 2;
    }
    OCT_CUDA(cudaDeviceSynchronize());
    same(cases[0], plans[0], stream, "streams");
    same(cases[1], plans[1], stream, "streams");
    Status states[2];
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 300 && states[t].ok(); ++i)
          states[t] = context->run(plans[t], cases[t].args, t ? other : stream);
      });
    }
    for (std::thread& t : threads) t.join();
    must(states[0], "thread 0");
    must(states[1], "thread 1");
    OCT_CUDA(cudaDeviceSynchronize());
    total_runs += 600;
    same(cases[0], plans[0], stream, "threads");
    same(cases[1], plans[1], stream, "threads");
    std::printf("two streams, two threads: failures %lld\n", static_cast<long long>(failures));
  }

  // Large: many outputs, and more than 2^31 of them.
  if (options.large) {
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
      if (seconds() > options.seconds) break;
      arena.reset();
      DeviceCase c = make_case(arena, dense_problem(l.m, l.n, l.k), CaseOptions{}, stream);
      must(context->load(l.kernel), l.kernel);
      check_case(c, make_plan(c.problem, l.kernel, 1), stream, "large");
    }
    std::printf("large: failures %lld, %.1f s\n", static_cast<long long>(failures), seconds());
  }
  return finish();
}
