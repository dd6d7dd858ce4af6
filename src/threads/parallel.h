// Threads of one call: created by the call, joined before it returns, none when one is enough. No
// pool outlives a call, so the library can be loaded before a fork and holds no process-wide state.
// For the CPU backend and, for work of its own, the command.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace oct::threads {

inline int thread_count(int wanted) {
  if (wanted > 0) return wanted;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// Runs body(worker) for worker 0 .. workers-1, worker 0 on the calling thread. If the system
// refuses a thread, or memory for one, the caller does its work: the body must not depend on
// workers running at the same time. The first exception is rethrown after all have ended. Returns
// the threads that there were, the calling one included.
template <typename Body>
int parallel_workers(int workers, const Body& body) {
  std::exception_ptr error;
  std::mutex mutex;
  const auto guarded = [&](int worker) {
    try {
      body(worker);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(std::max(0, workers - 1)));
  // NOTE: nothing may leave this function while a thread runs, or the process is terminated: what
  // can throw here is caught, also the allocation inside std::thread.
  int next = 1;
  for (; next < workers; ++next) {
    try {
      threads.emplace_back(guarded, next);
    } catch (const std::exception&) {
      break;  // the next one would be refused too
    }
  }
  guarded(0);
  for (; next < workers; ++next) guarded(next);
  for (std::thread& thread : threads) thread.join();
  if (error) std::rethrow_exception(error);
  return 1 + static_cast<int>(threads.size());
}

// Calls body(first, last) for ranges that together are [0, count), in `wanted` threads; 0 for all
// the processor's. Empty: once, with nothing to do.
template <typename Body>
void parallel_ranges(int64_t count, int wanted, const Body& body) {
  const int64_t parts = std::clamp<int64_t>(count, 1, thread_count(wanted));
  parallel_workers(static_cast<int>(parts),
                   [&](int64_t i) { body(count * i / parts, count * (i + 1) / parts); });
}

}  // namespace oct::threads
