// Times forced candidates: every kernel and split that serves a shape, by docs/performance.md's
// method (operands in rotation beyond 256 MB, a graph replayed, median). For fitting the cost model
// and for looking at one kernel; the benchmark proper is `octet bench`.
//
//   speed_probe FILE [seconds]     lines: M N K [most candidates [pdl [kernel substring]]]
//   prints CSV: m,n,k,kernel,split,us,predicted_us
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "cuda/context.h"
#include "device_case.h"
#include "plan/candidates.h"

using namespace oct;
using namespace oct::test;

int main(int argc, char** argv) {
  std::unique_ptr<cuda::Context> context;
  if (Status s = cuda::Context::create(0, context); !s.ok()) {
    std::printf("SKIPPED: %s\n", s.message().c_str());
    return 77;
  }
  const double most_seconds = argc > 2 ? std::atof(argv[2]) : 400;
  alarm(static_cast<unsigned>(most_seconds) + 60);
  const auto start = std::chrono::steady_clock::now();
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  OCT_CUDA(cudaSetDevice(0));
  cudaStream_t s;
  OCT_CUDA(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  Arena arena(std::size_t{6} << 30);
  cudaEvent_t e0, e1;
  OCT_CUDA(cudaEventCreate(&e0));
  OCT_CUDA(cudaEventCreate(&e1));
  FILE* file = std::fopen(argc > 1 ? argv[1] : "", "r");
  if (file == nullptr) return 2;
  char line[256];
  std::printf("m,n,k,kernel,split,us,predicted_us\n");
  while (std::fgets(line, sizeof line, file)) {
    long long m, n, k;
    int most = 8, pdl = 0;
    char filter[64] = "";
    if (line[0] == '#' ||
        std::sscanf(line, "%lld %lld %lld %d %d %63s", &m, &n, &k, &most, &pdl, filter) < 3)
      continue;
    octet_gemm_problem p = dense_problem(m, n, k);
    p.dependent_launch = p.weights_ready = pdl;
    const auto candidates = plan::list_candidates(p, context->device_spec(), 0, nullptr);
    arena.reset();
    const double bytes =
        double(n) * double(k) + double(m) * double(k) + 2.0 * double(m) * double(n);
    const int copies = std::clamp(static_cast<int>(270e6 / bytes) + 1, 3, 200);
    std::vector<DeviceCase> cases;
    for (int i = 0; i < copies; ++i) {
      CaseOptions o;
      o.seed = 3 + i % 8;
      cases.push_back(make_case(arena, p, o, s));
    }
    const double floor_us =
        std::max(bytes / 4.63e6, 2.0 * double(m) * double(n) * double(k) / 1672e6) + 2;
    int done = 0;
    for (const plan::Candidate& c : candidates) {
      if (filter[0] && std::strstr(c.kernel->name, filter) == nullptr) continue;
      if (done++ >= most) break;
      if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() >
          most_seconds)
        return 0;
      octet_gemm_plan plan{};
      plan.struct_size = sizeof plan;
      plan.problem = p;
      plan.split = c.split;
      plan.sms = static_cast<int32_t>(c.ctas);
      std::snprintf(plan.kernel, sizeof plan.kernel, "%s", c.kernel->name);
      if (!context->load(plan.kernel).ok()) return 1;
      std::vector<cuda::BoundGemm> bound(cases.size());
      for (std::size_t i = 0; i < cases.size(); ++i) {
        if (Status st = context->bind(plan, cases[i].args, bound[i]); !st.ok()) {
          std::printf("FAILED: %s\n", st.message().c_str());
          return 1;
        }
      }
      std::fprintf(stderr, "%s %d\n", plan.kernel, plan.split);
      const int rounds = std::max(1, static_cast<int>(std::ceil(4000 / (floor_us * 1.3) / copies)));
      cudaGraph_t graph;
      cudaGraphExec_t exec;
      OCT_CUDA(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
      for (int r = 0; r < rounds; ++r) {
        for (const auto& b : bound) {
          if (!context->run(b, s).ok()) return 1;
        }
      }
      OCT_CUDA(cudaStreamEndCapture(s, &graph));
      OCT_CUDA(cudaGraphInstantiate(&exec, graph, 0));
      OCT_CUDA(cudaGraphLaunch(exec, s));
      OCT_CUDA(cudaStreamSynchronize(s));
      std::vector<float> us;
      for (int i = 0; i < 7; ++i) {
        usleep(10000);
        OCT_CUDA(cudaEventRecord(e0, s));
        OCT_CUDA(cudaGraphLaunch(exec, s));
        OCT_CUDA(cudaEventRecord(e1, s));
        OCT_CUDA(cudaEventSynchronize(e1));
        float ms;
        OCT_CUDA(cudaEventElapsedTime(&ms, e0, e1));
        us.push_back(ms * 1e3f / static_cast<float>(rounds * copies));
      }
      std::sort(us.begin(), us.end());
      std::printf("%lld,%lld,%lld,%s%s,%d,%.2f,%.2f\n", m, n, k, c.kernel->name, pdl ? "(pdl)" : "",
                  c.split, us[3], c.cost.total());
      OCT_CUDA(cudaGraphExecDestroy(exec));
      OCT_CUDA(cudaGraphDestroy(graph));
    }
  }
  std::printf("# done %.1f s\n",
              std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}
