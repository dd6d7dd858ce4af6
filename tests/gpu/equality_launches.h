// Stages of equality_test about ways to launch: back to back, on few SMs, again and again, from a
// graph, on two streams and from two threads.
#pragma once

#include <thread>

#include "equality_harness.h"
#include "random_cases.h"

namespace oct::test {

// Every kernel and every split on long K, launched back to back.
inline void long_k(TestBed& bed) {
  const int64_t before = total_runs;
  for (const char* kernel : kernels_where([](const abi::TileConfig&) { return true; })) {
    const abi::TileConfig tile = abi::parse_kernel(kernel);
    bed.arena.reset();
    const octet_gemm_problem p = dense_problem(tile.normal() ? 200 : tile.tile_m - 1, 2112, 7168);
    CaseOptions o;
    o.seed = bed.rng();
    DeviceCase c = make_case(bed.arena, p, o, bed.stream);
    for (int over = 1; over <= 8; ++over) {
      const int split = tile.sequential ? 2 * over - 1 : over * tile.k_groups;
      if (!plan::serves(tile, p, context->device_spec(), split).ok()) break;
      const octet_gemm_plan plan = plan_for(p, kernel, split);
      cuda::BoundGemm bound;
      if (!must(context->bind(plan, c.args, bound), kernel)) break;
      check_case(c, plan, bed.stream, "long K");
      for (int i = 0; i < 50; ++i) must(context->run(bound, bed.stream), kernel);
      total_runs += 50;
      if (!same(c, plan, bed.stream, "back to back")) break;
    }
  }
  std::printf("long K, every split: %lld runs, failures %lld, %.1f s\n",
              static_cast<long long>(total_runs - before), static_cast<long long>(failures),
              bed.clock.seconds());
}

// SM budgets 1..132 with odd numbers of tiles; 1000 repeats are spread over them.
inline void budgets(TestBed& bed) {
  const int64_t before = total_runs;
  for (const char* kernel :
       {"normal_m128n128_x2", "normal_m256n128_cn2", "normal_m128n192_cm2", "swapped_w64t16_x2_o2",
        "swapped_w64t16_k2_x2_b2", "normal_m128n64_seq"}) {
    const abi::TileConfig tile = abi::parse_kernel(kernel);
    for (const int over : {1, 3, 4}) {
      if (over > 1 && !tile.splits_over_cluster()) continue;
      bed.arena.reset();
      octet_gemm_problem p = dense_problem(tile.normal() ? 700 : 16, 1700, 128 * 13 + 40);
      CaseOptions o;
      o.seed = bed.rng();
      DeviceCase c = make_case(bed.arena, p, o, bed.stream);
      const int split = over * tile.k_groups;
      compute_reference(c, split, bed.stream);
      for (int sms = 1; sms <= 132; ++sms) {
        p.sm_budget = sms;
        if (!plan::serves(tile, p, context->device_spec(), split).ok()) continue;
        const octet_gemm_plan plan = plan_for(p, kernel, split);
        fill_bytes(c.d_buffer, c.d_bytes, c.poison_seed, bed.stream);
        if (!must(context->run(plan, c.args, bed.stream), kernel)) break;
        ++total_runs;
        if (!same(c, plan, bed.stream, "budget")) break;
      }
    }
  }
  std::printf("budgets 1..132: %lld runs, failures %lld, %.1f s\n",
              static_cast<long long>(total_runs - before), static_cast<long long>(failures),
              bed.clock.seconds());
}

// 1000 repeats of each of several plans, no synchronisation in between; a dependent-launch chain
// too.
inline void repeats(TestBed& bed) {
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
    bed.arena.reset();
    octet_gemm_problem p = dense_problem(r.m, r.n, r.k);
    p.dependent_launch = r.pdl;
    p.weights_ready = r.pdl;
    CaseOptions o;
    o.seed = bed.rng();
    DeviceCase c = make_case(bed.arena, p, o, bed.stream);
    const octet_gemm_plan plan = plan_for(p, r.kernel, r.split);
    compute_reference(c, r.split, bed.stream);
    cuda::BoundGemm bound;
    if (!must(context->bind(plan, c.args, bound), r.kernel)) continue;
    for (int i = 0; i < 1000; ++i) {
      if (!must(context->run(bound, bed.stream), r.kernel)) break;
      ++total_runs;
      if (i % 100 == 99) {
        if (!same(c, plan, bed.stream, "repeat")) break;
        fill_bytes(c.d_buffer, c.d_bytes, c.poison_seed, bed.stream);
      }
    }
  }
  std::printf("repeats: 6 plans, 1000 times each, failures %lld, %.1f s\n",
              static_cast<long long>(failures), bed.clock.seconds());
}

// Capture and replay; an unprepared plan leaves a capture intact.
inline void capture_and_replay(TestBed& bed) {
  std::unique_ptr<cuda::Context> fresh;
  must(cuda::Context::create(0, fresh), "second context");
  bed.arena.reset();
  octet_gemm_problem p = dense_problem(100, 1000, 1000);
  DeviceCase c = make_case(bed.arena, p, CaseOptions{}, bed.stream);
  const octet_gemm_plan plan = plan_for(p, "normal_m64n64_x2_o2", 2);
  compute_reference(c, 2, bed.stream);
  OCT_CUDA(cudaStreamSynchronize(bed.stream));
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  OCT_CUDA(cudaStreamBeginCapture(bed.stream, cudaStreamCaptureModeGlobal));
  const Status unprepared = fresh->run(plan, c.args, bed.stream);
  if (unprepared.code() != OCTET_NOT_PREPARED) {
    std::printf("FAILED: unprepared plan gave %d\n", unprepared.code());
    ++failures;
  }
  must(context->run(plan, c.args, bed.stream), "capture");
  OCT_CUDA(cudaStreamEndCapture(bed.stream, &graph));
  OCT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 20; ++i) {
    fill_bytes(c.d_buffer, c.d_bytes, c.poison_seed, bed.stream);
    OCT_CUDA(cudaGraphLaunch(exec, bed.stream));
    ++total_runs;
    if (!same(c, plan, bed.stream, "graph")) break;
  }
  OCT_CUDA(cudaGraphExecDestroy(exec));
  OCT_CUDA(cudaGraphDestroy(graph));
  std::printf("graph: captured beside an unprepared plan, 20 replays, failures %lld\n",
              static_cast<long long>(failures));
}

// Two streams at once, then two host threads.
inline void streams_and_threads(TestBed& bed) {
  bed.arena.reset();
  std::vector<DeviceCase> cases;
  std::vector<octet_gemm_plan> plans;
  for (int i = 0; i < 2; ++i) {
    octet_gemm_problem p = dense_problem(300 + 17 * i, 1500, 1000);
    CaseOptions o;
    o.seed = 5 + i;
    cases.push_back(make_case(bed.arena, p, o, bed.stream));
    plans.push_back(plan_for(p, i ? "normal_m128n96_x2" : "normal_m128n128_x2", 2));
    compute_reference(cases[i], 2, bed.stream);
  }
  OCT_CUDA(cudaStreamSynchronize(bed.stream));
  for (int i = 0; i < 200; ++i) {
    must(context->run(plans[0], cases[0].args, bed.stream), "stream 0");
    must(context->run(plans[1], cases[1].args, bed.other), "stream 1");
    total_runs += 2;
  }
  OCT_CUDA(cudaDeviceSynchronize());
  same(cases[0], plans[0], bed.stream, "streams");
  same(cases[1], plans[1], bed.stream, "streams");
  Status states[2];
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300 && states[t].ok(); ++i)
        states[t] = context->run(plans[t], cases[t].args, t ? bed.other : bed.stream);
    });
  }
  for (std::thread& t : threads) t.join();
  must(states[0], "thread 0");
  must(states[1], "thread 1");
  OCT_CUDA(cudaDeviceSynchronize());
  total_runs += 600;
  same(cases[0], plans[0], bed.stream, "threads");
  same(cases[1], plans[1], bed.stream, "threads");
  std::printf("two streams, two threads: failures %lld\n", static_cast<long long>(failures));
}

}  // namespace oct::test
