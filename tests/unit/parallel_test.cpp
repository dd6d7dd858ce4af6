// Threads of one call: whatever the number of threads and of items, each item is somebody's once,
// and an exception arrives when all threads have ended.
#include "threads/parallel.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace oct::threads {
namespace {

TEST(Parallel, RangesHoldEveryItemOnce) {
  for (const int64_t count : {0, 1, 2, 7, 100}) {
    for (const int wanted : {0, 1, 3, 8, 200}) {
      std::vector<std::atomic<int>> times(static_cast<std::size_t>(count));
      std::atomic<int> calls = 0;
      parallel_ranges(count, wanted, [&](int64_t first, int64_t last) {
        ++calls;
        for (int64_t i = first; i < last; ++i) ++times[static_cast<std::size_t>(i)];
      });
      for (const auto& n : times) EXPECT_EQ(n, 1) << count << " items, " << wanted << " threads";
      EXPECT_LE(calls, std::max<int64_t>(1, count));
      EXPECT_LE(calls, wanted > 0 ? wanted : thread_count(0));
    }
  }
}

TEST(Parallel, EveryWorkerRunsThoughOneThrows) {
  std::atomic<int> ran = 0;
  const auto body = [&](int worker) {
    ++ran;
    if (worker % 2 == 1) throw std::runtime_error("odd");
  };
  EXPECT_THROW(parallel_workers(6, body), std::runtime_error);
  EXPECT_EQ(ran, 6);
  EXPECT_EQ(parallel_workers(1, [&](int worker) { EXPECT_EQ(worker, 0); }), 1);
}

}  // namespace
}  // namespace oct::threads
