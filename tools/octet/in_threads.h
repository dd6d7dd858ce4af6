// Work of the command itself, apart from the library's calls, in as many threads as there are to be
// had: a system that refuses some, or memory for one, makes it slower and nothing else.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace octet::tool {

// Calls body(first, last) for ranges that together are [0, count), at the same time if threads
// allow. `wanted` threads; 0 for all the processor's. The first exception is rethrown when all have
// ended.
template <typename Body>
void in_threads(int64_t count, int32_t wanted, const Body& body) {
  const int64_t all = wanted > 0 ? wanted : std::max(1u, std::thread::hardware_concurrency());
  const int64_t parts = std::clamp<int64_t>(count, 1, all);
  std::exception_ptr error;
  std::mutex mutex;
  const auto part = [&](int64_t i) {
    try {
      body(count * i / parts, count * (i + 1) / parts);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(parts - 1));
  // NOTE: nothing may leave while a thread runs, or the process is terminated.
  int64_t next = 1;
  for (; next < parts; ++next) {
    try {
      threads.emplace_back(part, next);
    } catch (const std::exception&) {
      break;  // the next one would be refused too
    }
  }
  part(0);
  for (; next < parts; ++next) part(next);
  for (std::thread& thread : threads) thread.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace octet::tool
