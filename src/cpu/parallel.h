// Threads of one call: created by the call, joined before it returns, none when one is enough. No
// pool outlives a call, so the library can be loaded before a fork and holds no process-wide state.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace oct::cpu {

inline int thread_count(int wanted) {
  if (wanted > 0) return wanted;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// Runs body(worker) for worker 0 .. workers-1, worker 0 on the calling thread. If the system
// refuses a thread the caller does its work: the body must not depend on workers running at the
// same time. The first exception is rethrown after all have ended. Returns the threads that there
// were, the calling one included.
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
  std::vector<int> left_over;
  for (int worker = 1; worker < workers; ++worker) {
    try {
      threads.emplace_back(guarded, worker);
    } catch (const std::system_error&) {
      left_over.push_back(worker);
    }
  }
  guarded(0);
  for (const int worker : left_over) guarded(worker);
  for (std::thread& thread : threads) thread.join();
  if (error) std::rethrow_exception(error);
  return 1 + static_cast<int>(threads.size());
}

}  // namespace oct::cpu
