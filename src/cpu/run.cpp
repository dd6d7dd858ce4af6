// See run.h. Hundreds of small views and one view of 2^40 outputs go the same way: all tiles of all
// views are numbered in one row, and threads take the next number. Scratch is one allocation, at
// most kMostScratch bytes; more threads get narrower tiles.
#include "cpu/run.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "core/float_types.h"
#include "core/fp_environment.h"
#include "core/math.h"
#include "core/refusals.h"
#include "cpu/isa.h"
#include "cpu/tile.h"
#include "threads/parallel.h"

namespace oct::cpu {
namespace {

using core::ceil_div;
using core::DenseView;

constexpr int64_t kMostScratch = int64_t{64} << 20;
constexpr int kWidestTile = 1024;
// Work of a thread that is worth its creation (10-20 us): multiply-adds, and bytes of zeros.
constexpr int64_t kWorthAThread = int64_t{1} << 19;

// How all views are cut: tiles of rows x columns.
struct Cut {
  int rows = kMaxRows, columns = kWidestTile;
  std::vector<int64_t> first;  // number of the first tile of each view; one more at the end

  int64_t tiles() const { return first.back(); }
  int64_t across(const DenseView& v) const { return ceil_div(v.n, columns); }
  int64_t down(const DenseView& v) const { return ceil_div(v.m, rows); }

  void number(const std::vector<DenseView>& views) {
    first.assign(1, 0);
    first.reserve(views.size() + 1);
    for (const DenseView& v : views) first.push_back(first.back() + across(v) * down(v));
  }

  // Tiles that share columns of B follow each other.
  Tile tile(const DenseView& v, int64_t index) const {
    const int64_t row = index % down(v) * rows, column = index / down(v) * columns;
    return {row, column, static_cast<int>(std::min<int64_t>(rows, v.m - row)),
            static_cast<int>(std::min<int64_t>(columns, v.n - column))};
  }
};

// Large tiles cost the least packing, and of equal ones those that are nearly square; every thread
// should have a few.
Cut cut(const std::vector<DenseView>& views, int threads) {
  constexpr int kTilesPerThread = 4, kFewestRows = 32;
  Cut c;
  int64_t tallest = 0, widest = 0;
  for (const DenseView& v : views) {
    tallest = std::max(tallest, v.m);
    widest = std::max(widest, v.n);
  }
  // As many tiles in less memory.
  while (c.columns > kMaxColumns && c.columns / 2 >= widest) c.columns /= 2;
  c.number(views);
  const auto enough = [&] {
    return threads == 1 || c.tiles() >= int64_t{threads} * kTilesPerThread;
  };
  while (!enough()) {
    const bool narrower = c.columns > kMaxColumns;
    const bool shorter = c.rows > kFewestRows && tallest > kFewestRows;
    if (!narrower && !shorter) break;
    if (narrower && (!shorter || c.columns > std::min<int64_t>(c.rows, tallest))) {
      c.columns /= 2;
    } else {
      c.rows /= 2;
    }
    c.number(views);
  }
  return c;
}

int64_t cost(const core::Work& work) {
  double sum = 0;
  for (const DenseView& v : work.gemms) {
    sum += static_cast<double>(v.m) * static_cast<double>(v.n) * (static_cast<double>(v.k) + 16);
  }
  for (const core::ZeroRows& z : work.zeros) {
    sum += static_cast<double>(z.rows) * static_cast<double>(z.n);
  }
  return static_cast<int64_t>(std::min(sum, 0x1p60));
}

// This worker's share of every piece.
void fill_zeros(const std::vector<core::ZeroRows>& zeros, int worker, int workers) {
  for (const core::ZeroRows& z : zeros) {
    const int64_t bytes = core::size_of(z.d_type);
    for (int64_t i = z.rows * worker / workers; i < z.rows * (worker + 1) / workers; ++i) {
      std::memset(static_cast<char*>(z.d) + i * z.d_ld * bytes, 0,
                  static_cast<std::size_t>(z.n * bytes));
    }
  }
}

struct Free {
  void operator()(char* memory) const { ::operator delete (memory, std::align_val_t{64}); }
};

}  // namespace

bool isa_available(octet_isa isa) { return find_kernel(isa) != nullptr; }

Status run(const core::Work& work, const Options& options, Report* report) {
  const Kernel* kernel = find_kernel(options.isa);
  if (kernel == nullptr) {
    return core::refuse(core::Rule::kIsa,
                        {{"got", isa_name(options.isa)}, {"want", available_isas()}});
  }

  const int64_t worthwhile = 1 + cost(work) / kWorthAThread;
  int workers =
      static_cast<int>(std::min<int64_t>(threads::thread_count(options.threads), worthwhile));
  Cut tiles = cut(work.gemms, workers);
  if (work.zeros.empty()) {
    workers = static_cast<int>(std::clamp<int64_t>(tiles.tiles(), 1, workers));
  }
  const bool split = std::any_of(work.gemms.begin(), work.gemms.end(),
                                 [](const DenseView& v) { return v.split > 1; });
  int64_t bytes = Scratch::bytes(*kernel, tiles.columns, split);
  while (bytes * workers > kMostScratch && tiles.columns > kMaxColumns) {
    tiles.columns /= 2;
    tiles.number(work.gemms);
    bytes = Scratch::bytes(*kernel, tiles.columns, split);
  }
  workers = static_cast<int>(std::min<int64_t>(workers, kMostScratch / bytes));
  const int64_t scratch_bytes = work.gemms.empty() ? 0 : bytes * workers;

  const std::unique_ptr<char, Free> memory(static_cast<char*>(
      ::operator new (static_cast<std::size_t>(scratch_bytes), std::align_val_t{64})));
  std::atomic<int64_t> next{0};
  const int threads = threads::parallel_workers(workers, [&](int worker) {
    const core::FpEnvironment environment;
    fill_zeros(work.zeros, worker, workers);
    if (work.gemms.empty()) return;
    const Scratch scratch(*kernel, tiles.columns, split, memory.get() + bytes * worker);
    for (;;) {
      const int64_t index = next.fetch_add(1, std::memory_order_relaxed);
      if (index >= tiles.tiles()) return;
      const auto view =
          static_cast<std::size_t>(std::upper_bound(tiles.first.begin(), tiles.first.end(), index) -
                                   tiles.first.begin() - 1);
      const DenseView& v = work.gemms[view];
      run_tile(*kernel, v, tiles.tile(v, index - tiles.first[view]), scratch);
    }
  });
  if (report != nullptr) *report = {kernel->isa, threads, scratch_bytes};
  return {};
}

}  // namespace oct::cpu
