// See bench_timer.h.
#include "bench_timer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

#include "bench_layout.h"
#include "bench_statistics.h"

namespace octet::tool {
namespace {

constexpr int kReplays = 7;
constexpr auto kRest = std::chrono::milliseconds(10);
constexpr double kSustainedMs = 2000, kCountedMs = 1000;

}  // namespace

Timer::Timer(cudaStream_t stream) : stream_(stream), before_(make_event()), after_(make_event()) {}

GraphExec Timer::instantiate(const std::function<void(int)>& enqueue, int launches) {
  const Graph graph = capture(stream_, [&] {
    for (int i = 0; i < launches; ++i) enqueue(i);
  });
  cudaGraphExec_t exec = nullptr;
  cuda_ok(cudaGraphInstantiate(&exec, graph.get(), 0), "instantiating a graph");
  GraphExec owned(exec);
  cuda_ok(cudaGraphUpload(exec, stream_), "uploading a graph");
  return owned;
}

double Timer::replay_us(const GraphExec& graph) {
  cuda_ok(cudaEventRecord(before_.get(), stream_), "recording an event");
  cuda_ok(cudaGraphLaunch(graph.get(), stream_), "launching a graph");
  cuda_ok(cudaEventRecord(after_.get(), stream_), "recording an event");
  wait_for(after_, "a replay");
  float ms = 0;
  cuda_ok(cudaEventElapsedTime(&ms, before_.get(), after_.get()), "reading events");
  return 1e3 * static_cast<double>(ms);
}

double Timer::sustained_us(const GraphExec& graph, int launches) {
  const Event start = make_event();
  std::vector<Event> ends;
  std::vector<double> ms;
  cuda_ok(cudaEventRecord(start.get(), stream_), "recording an event");
  while (ms.size() < 2 || ms.back() < kSustainedMs) {
    cuda_ok(cudaGraphLaunch(graph.get(), stream_), "launching a graph");
    ends.push_back(make_event());
    cuda_ok(cudaEventRecord(ends.back().get(), stream_), "recording an event");
    if (ends.size() < 3) continue;
    // Two replays stay queued, so that the device never waits for the host.
    const Event& done = ends[ms.size()];
    wait_for(done, "a replay");
    float elapsed = 0;
    cuda_ok(cudaEventElapsedTime(&elapsed, start.get(), done.get()), "reading events");
    ms.push_back(static_cast<double>(elapsed));
  }
  wait_for(ends.back(), "the last replay");
  const auto first = static_cast<std::size_t>(
      std::lower_bound(ms.begin(), ms.end(), ms.back() - kCountedMs) - ms.begin());
  // A replay longer than a second leaves one to count.
  const std::size_t from = std::min(first, ms.size() - 2);
  const double replays = static_cast<double>(ms.size() - 1 - from);
  return 1e3 * (ms.back() - ms[from]) / (replays * launches);
}

Timing Timer::measure(const std::function<void(int)>& enqueue, int sets, double least_us,
                      bool sustained) {
  GraphExec graph;
  int launches = 0;
  // With dependent launch a call can undercut its floor; then the graph is made longer.
  for (double least = least_us;;) {
    launches = launches_for(least, sets);
    graph = instantiate(enqueue, launches);
    replay_us(graph);  // warms up
    const double us = replay_us(graph);
    if (us >= kLeastReplayUs || least < least_us / 8) break;
    least = std::min(least * 0.8, 0.95 * us / launches);
  }
  std::vector<double> replays;
  for (int i = 0; i < kReplays; ++i) {
    std::this_thread::sleep_for(kRest);
    replays.push_back(replay_us(graph) / launches);
  }
  Timing timing;
  timing.us = median(replays);
  timing.spread = spread(replays);
  if (sustained) timing.sustained_us = sustained_us(graph, launches);
  return timing;
}

double Timer::glance(const std::function<void(int)>& enqueue, int sets, double least_us) {
  constexpr double kGlanceUs = 500;
  const int launches = std::clamp(static_cast<int>(kGlanceUs / least_us), 2, 4 * sets);
  const GraphExec graph = instantiate(enqueue, launches);
  replay_us(graph);
  return std::min(replay_us(graph), replay_us(graph)) / launches;
}

}  // namespace octet::tool
