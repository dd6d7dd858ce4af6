// See cost_model.h.
#include "plan/cost_model.h"

#include <algorithm>

#include "core/math.h"
#include "core/types.h"
#include "plan/kernel_costs.h"
#include "plan/kernel_facts.h"
#include "plan/longer_of_two.h"

namespace oct::plan {
namespace {

// The logarithm to base 2, as a straight line between powers: the same on every machine.
double doublings(double x) {
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent);  // [0.5, 1)
  return x <= 0 ? 0 : exponent - 2 + 2 * fraction;
}

// The longer of two limits, a little more (7 %) where both are alike.
double binding(double x, double y) {
  return (x + y + std::sqrt((x - y) * (x - y) + 0.02 * x * y)) / 2;
}

// What L2 gives, all SMs asking at once: bytes a cycle for each. Of rows that are whole lines; of
// others, by what their pitch is a multiple of: 128 bytes of K then lie in two lines, and in five
// sectors of them where rows begin in the middle of one.
constexpr double kWholeLines = 55.3;
constexpr double kPitch16 = 31.7, kPitch32 = 46.4, kPitch64 = 48.7;

// What was measured with the dense kernels of one scale a row alone: costs of grouped kernels and
// of scales on both sides were fitted without it.
bool dense_costs(const abi::TileConfig& tile) { return !tile.scheduled() && !tile.paired; }

}  // namespace

Traffic traffic_of(const octet_gemm_problem& p) {
  Traffic t;
  t.blocks = static_cast<double>(core::ceil_div(p.k, core::kBlockK));
  const auto groups = static_cast<double>(p.groups);
  t.rows = static_cast<double>(core::round_up(p.m, 8)) * groups;
  t.d_bytes = static_cast<double>(p.m) * static_cast<double>(p.n) * groups *
              (p.d_type == OCTET_F32 ? 4 : 2) * (p.accumulate ? 2 : 1);
  t.elements = static_cast<double>(p.m) * static_cast<double>(p.n) * groups;
  t.read =
      (static_cast<double>(p.m) + static_cast<double>(p.n)) * static_cast<double>(p.k) * groups;
  t.weights = static_cast<double>(p.n) * static_cast<double>(p.k) * groups;
  t.m = static_cast<double>(p.m);
  t.n = static_cast<double>(p.n);
  // The pitch is taken to be K, rounded up to what the copy engine needs. Groups over K share one
  // that nobody knows here.
  const int64_t pitch = core::round_up(p.k, 16);
  t.whole_lines = p.grouping == OCTET_K_GROUPED || pitch % 128 == 0;
  t.l2_rate = t.whole_lines     ? kWholeLines
              : pitch % 32 != 0 ? kPitch16
              : pitch % 64 != 0 ? kPitch32
                                : kPitch64;
  t.whole_sectors = p.n * (p.d_type == OCTET_F32 ? 4 : 2) % 32 == 0;
  return t;
}

double l2_cycles_of(int kernel, const Geometry& g, const Traffic& traffic) {
  const abi::TileConfig& tile = kKernelFacts[static_cast<std::size_t>(kernel)].tile;
  const double rows_of_a = static_cast<double>(tile.tile_m) / tile.cluster_n * tile.k_groups;
  const double rows_of_b = static_cast<double>(tile.tile_n) / tile.cluster_m * tile.k_groups;
  if (!dense_costs(tile)) {
    return traffic.whole_lines ? 0 : core::kBlockK * (rows_of_a + rows_of_b) / traffic.l2_rate;
  }
  // Some rows lie outside of the matrices. They come as zeros, but cost L2 three times what a row
  // costs that is there, and more where few CTAs ask for all of them: by the fourth root of how
  // many times the average such a CTA asks for.
  constexpr double kOutside = 17.1;  // bytes a cycle for each SM
  const double tiles_m = static_cast<double>(g.units_m) * tile.cluster_m;
  const double tiles_n = static_cast<double>(g.units_n) * tile.cluster_n;
  const double empty_m = std::max(0.0, tiles_m - traffic.m / tile.tile_m);
  const double empty_n = std::max(0.0, tiles_n - traffic.n / tile.tile_n);
  const double average = rows_of_a * empty_m / tiles_m + rows_of_b * empty_n / tiles_n;
  const double most = rows_of_a * std::min(1.0, empty_m) + rows_of_b * std::min(1.0, empty_n);
  const double inside = rows_of_a + rows_of_b - average;
  const double outside =
      average > 0 ? average * std::sqrt(std::sqrt(std::max(1.0, most / average))) : 0;
  // Wide tiles of weights suffer a little less from rows that are no whole lines.
  constexpr double kWide = 0.146;  // for every 64 weights more
  const double wide = tile.normal() || traffic.whole_lines ? 1 : 1 + kWide * (tile.tile_n / 64 - 1);
  return core::kBlockK * (inside / (traffic.l2_rate * wide) + outside / kOutside);
}

// All of a candidate's cost but `work`, which is longer_of_two(math, stream).
// Constants and costs: chosen so that the cheapest candidate is a fast one, on the timings that
// kernel_costs.h names (an H200).
Cost predict_parts(int kernel, const Geometry& g, const Traffic& traffic, double l2_cycles,
                   const octet_device_spec& device, int split) {
  constexpr double kClock = 1700;          // cycles in a microsecond, under load
  constexpr double kFill = 0.87;           // to the first product, and from the last one
  constexpr double kClusterLaunch = 0.11;  // clusters of more than two CTAs have to be placed
  constexpr double kMeeting = 0.27;        // ranges of K wait for each other
  constexpr double kSent = 2.77;          // us for 64 KB of partial sums that a CTA sends to others
  constexpr double kSummed = 1.03;        // us for 64 KB of a tile that it adds up and stores
  constexpr double kBeside = 0.24;        // more for each further CTA that an SM holds
  constexpr double kStore = 1.31;         // us for 64 KB of D
  constexpr double kLaterStore = 0.80;    // of it, from the second tile on: operands go on arriving
  constexpr double kHiddenStore = 0.99;   // where it leaves under the next tile's WGMMA
  constexpr double kByRows = 1.41;        // times that, where tokens are WGMMA's N side
  constexpr double kSplitSectors = 1.40;  // ... where rows of D begin in the middle of a sector
  constexpr double kNarrowBoxes = 1.29;   // ... and the copy engine takes 64 or 144 bytes of each
  constexpr double kStreamed = 0.953;     // of the DRAM rate that tiles reach
  constexpr double kBusy = 0.35;          // of the SMs, that saturate DRAM
  constexpr double kPort = 64;            // bytes a cycle that an SM takes from L2
  constexpr double kMeasuredTensorRate = 1672e12 / 132;  // of an SM of the device that was measured
  const abi::TileConfig& tile = kKernelFacts[static_cast<std::size_t>(kernel)].tile;
  Cost c;
  if (g.units == 0) return c;
  const double clusters = static_cast<double>(g.grid / g.cluster);
  const double waves = std::ceil(static_cast<double>(g.units) / clusters);
  const double range = std::ceil(traffic.blocks / (tile.sequential ? 1 : split));
  const double per_sm = std::clamp(static_cast<double>(g.grid) / device.sms, 1.0,
                                   static_cast<double>(tile.ctas_per_sm));
  const double slower = kMeasuredTensorRate * device.sms / device.fp8_flops_per_second;

  const bool known = dense_costs(tile);
  // Power sets the clock: it rises where SMs idle or the last wave leaves them so, up to the
  // highest there is (1,980 MHz).
  constexpr double kRise = 0.376, kFastest = 0.86;  // of a cycle under load
  const double busy_share = std::min(1.0, static_cast<double>(g.grid) / device.sms) *
                            static_cast<double>(g.units) / (waves * clusters);
  const double cycle = known ? std::max(kFastest, 1 - kRise * (1 - busy_share)) : 1;
  const double fastest = known ? kFastest : 1;
  // Cycles of one K-block of a tile, with so many CTAs on an SM on average and so many on the
  // device: as measured; where tensor cores are slower than those measured, their difference comes
  // on top, as what they did not hide there they do not hide here. But no less than an SM's port
  // takes to bring the operands in, and than L2 takes for all of them.
  const KernelCost& cost = kKernelCosts[kernel];
  const auto cycles_with = [&](double ctas, double all) {
    double cycles = cost.alone;
    if (tile.ctas_per_sm > 1) {
      cycles += (cost.shared - cost.alone) * (ctas - 1) / (tile.ctas_per_sm - 1);
    }
    const double tensor = 2.0 * tile.piece_cols() * tile.pieces() * tile.math_groups() * ctas;
    const double operands =
        static_cast<double>(core::kBlockK) * (tile.tile_m + tile.tile_n) * tile.k_groups * ctas;
    cycles = std::max({cycles * cycle + tensor * (slower - 1), tensor * (slower - 1 + fastest),
                       operands / kPort * fastest});
    // L2 serves whoever asks, but an SM alone gets hardly more than its share.
    constexpr double kMostOfShare = 1.5;
    if (l2_cycles == 0) return cycles;
    return std::max(binding(cycles, l2_cycles * all / device.sms), l2_cycles * ctas / kMostOfShare);
  };
  // The last wave may leave the SM to fewer of them.
  const double last_units = static_cast<double>(g.units) - (waves - 1) * clusters;
  const double last_per_sm =
      std::clamp(last_units * g.cluster / device.sms, 1.0, static_cast<double>(tile.ctas_per_sm));
  double cycles = cycles_with(last_per_sm, last_units * g.cluster);
  if (waves > 1) cycles += (waves - 1) * cycles_with(per_sm, static_cast<double>(g.grid));
  if (tile.grouped) {
    // Rows that are none cost power.
    constexpr double kPadding = 0.03;  // for every doubling
    const double held = static_cast<double>(g.units_m) * tile.tile_m;
    cycles *=
        g.share * (1 + kPadding * std::max(0.0, doublings(held / std::max(8.0, traffic.rows))));
  }

  c.launch = device.launch_seconds * 1e6 + (g.cluster > 2 ? kClusterLaunch : 0);
  c.fill = kFill;
  c.math = range * cycles / kClock;
  // With few SMs at work, DRAM is limited by what they have in flight.
  const double busy = static_cast<double>(g.grid) / per_sm / (kBusy * device.sms);
  // Weights pass by once for every tile of tokens; the second time they mostly lie in L2. Where
  // they are the 64-row operand, that holds for every further time; else it costs once, as tiles of
  // the same weights walk side by side and ask for what is still on its way from DRAM.
  constexpr double kAgain = 0.3, kAgainBeside = 0.5;
  const double more = static_cast<double>(g.units_m) - 1;
  const double again = tile.grouped    ? 0
                       : tile.normal() ? kAgainBeside * std::min(more, 1.0) * traffic.weights
                                       : kAgain * more * traffic.weights;
  c.stream = (traffic.read + again + traffic.d_bytes) /
             (device.dram_bytes_per_second * kStreamed * std::min(1.0, busy)) * 1e6;
  if (g.cluster_split > 1) {
    const double share = 1.0 / g.cluster_split;
    c.exchange = waves * (kSent * (1 - share) + kSummed * share) * tile.partial_bytes() / 65536.0;
  }
  if (g.cluster_split > 1 || tile.k_groups > 1) c.exchange += waves * kMeeting;
  c.exchange *= 1 + kBeside * (std::ceil(per_sm) - 1);
  double tile_store = tile.tile_m * tile.tile_n * 2.0 / 65536.0;
  // (Costs of grouped kernels were fitted without these.)
  if (!tile.normal() && !tile.grouped) tile_store *= kByRows;
  if (known && !traffic.whole_sectors) {
    tile_store *= kSplitSectors;
    if (tile.normal() && tile.piece_cols() % 64 != 0) tile_store *= kNarrowBoxes;
  }
  // Wider elements, and C that is read.
  if (tile.paired) tile_store *= traffic.d_bytes / std::max(1.0, traffic.elements * 2);
  // ... or, with scales on both sides, under that of the other warpgroup, where the ring still
  // holds operands when C has passed.
  const bool hides = tile.pieces() == 2 || (tile.staggered() && !tile.k_grouped);
  const double later = hides ? kHiddenStore : known ? kStore * kLaterStore : kStore;
  c.store = tile_store * (kStore + (waves - 1) * later) + waves * cost.tile;
  return c;
}

void finish(Cost& cost) { cost.work = longer_of_two(cost.math, cost.stream); }

double least_total(const Cost& c) {
  // longer_of_two() is at least the longer of the two but for its rounding, and total() rounds by
  // half a thousandth.
  const double work = std::max(c.math, c.stream) * (1 - 1e-9);
  return c.launch + c.fill + work + c.exchange + c.store - 0.001;
}

}  // namespace oct::plan
