// Shared memory of every kernel and split, and what its barriers count, against a recount: fields
// laid out and compared in pairs, arrivals by asking every thread of a cluster, bytes from the
// boxes that the launcher encodes.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernel_abi/smem_layout.h"
#include "kernel_launches.h"

namespace oct::abi {
namespace {

using kernel_launches::all_variants;
using kernel_launches::box_bytes;
using kernel_launches::launch;
using kernel_launches::problem;
using kernel_launches::Variant;

constexpr int kCtaMost = 227 * 1024;               // dynamic shared memory of a CTA, SM90
constexpr int kSm = 228 * 1024, kReserved = 1024;  // of an SM; taken by the system for each CTA

cuda::Launch launch_of(const Variant& v, bool plain_sfa = false, bool copy_engine_store = false) {
  octet_gemm_problem p = problem(1000, 2048, 128 * 70);
  if (plain_sfa) p.sfa_layout = OCTET_ROW_MAJOR;
  p.accumulate = !copy_engine_store;
  return launch(v, kernel_launches::as_served(v, p));
}

struct Field {
  std::string name;
  int64_t at, bytes, alignment;
};

// Everything a CTA keeps in shared memory, from what the launcher passes to the kernel.
std::vector<Field> fields(const Variant& v, const cuda::Launch& l) {
  const TileConfig& t = v.tile;
  const KernelParams& p = l.params;
  const SmemLayout s = make_smem_layout(t, 1);  // what kernels are compiled with: see below
  std::vector<Field> out;
  const auto add = [&out](std::string name, int64_t at, int64_t bytes, int64_t alignment) {
    out.push_back({std::move(name), at, bytes, alignment});
  };
  for (int pipeline = 0; pipeline < t.k_groups; ++pipeline) {
    for (int stage = 0; stage < p.stages; ++stage) {
      const std::string name =
          "pipeline " + std::to_string(pipeline) + " stage " + std::to_string(stage);
      const int index = pipeline * p.stages + stage;
      const int64_t tiles = int64_t{index} * s.stage_bytes;
      const int64_t slot = p.scales + int64_t{index} * s.scale_bytes;
      for (int b = 0; b < t.blocks; ++b) {
        // 8 rows of 128 bytes are one pattern of the 128-byte swizzle; a part that one CTA of a
        // multicast brings starts a pattern, too.
        add(name + " A", tiles + a_tile(t, b), int64_t{t.tile_m} * 128, 1024);
        add(name + " B", tiles + b_tile(t, b), int64_t{t.tile_n} * 128, 1024);
        add(name + " SFA", slot + sfa_slot(t, b), int64_t{t.tile_m} * 4, b == 0 ? 128 : 16);
        add(name + " SFB", slot + sfb_slot(t, b), int64_t{sfb_count(t)} * 4, t.paired ? 128 : 16);
      }
      const int64_t full = p.barriers + full_barriers(p.stages, pipeline);
      add(name + " full", full + 8 * stage, 8, 8);
      add(name + " empty", full + empty_after_full(t, p.stages) + 8 * stage, 8, 8);
    }
  }
  const int ranges = p.cluster_split * t.k_groups;
  const int64_t staging = int64_t{t.math_warps()} * staging_boxes(t) * staging_bytes(t);
  const int64_t sums = ranges > 1 ? int64_t{p.share} * ranges * 512 : 0;
  add("exchange", p.exchange, std::max(staging, sums), 1024);
  const int64_t exchange_barrier = p.barriers + exchange_barriers(t, p.stages);
  add("exchange full", exchange_barrier, 8, 8);
  add("exchange free", exchange_barrier + 8, 8, 8);
  for (int i = 0; t.scheduled() && i < kTilePlaces; ++i) {
    const std::string name = "place " + std::to_string(i);
    add(name + " full", p.barriers + tile_barriers(t, p.stages) + 8 * i, 8, 8);
    add(name + " empty", p.barriers + tile_barriers(t, p.stages) + 8 * (kTilePlaces + i), 8, 8);
    add(name, p.barriers + tile_list(t, p.stages) + tile_bytes(t) * i, tile_bytes(t), 16);
  }
  for (int i = 0; t.packed && i < 2; ++i) {
    add("descriptor " + std::to_string(i), p.barriers + packed_map(t, p.stages, i), kMapBytes, 128);
  }
  return out;
}

TEST(KernelAbiMemory, FieldsAreApartAndAligned) {
  for (const Variant& v : all_variants()) {
    const cuda::Launch l = launch_of(v);
    std::vector<Field> all = fields(v, l);
    std::sort(all.begin(), all.end(), [](const Field& x, const Field& y) { return x.at < y.at; });
    int64_t end = 0;
    for (const Field& f : all) {
      EXPECT_GE(f.at, end) << v.name() << ": " << f.name << " lies over the field before it";
      EXPECT_EQ(f.at % f.alignment, 0) << v.name() << ": " << f.name << " at " << f.at;
      end = f.at + f.bytes;
    }
    EXPECT_LE(end, l.shared_bytes) << v.name();
    EXPECT_LT(l.shared_bytes - end, 256) << v.name() << ": memory that nothing uses";
  }
}

TEST(KernelAbiMemory, FitsAnSm) {
  for (const Variant& v : all_variants()) {
    const cuda::Launch l = launch_of(v);
    const int64_t total = l.shared_bytes;
    EXPECT_LE(total, kCtaMost) << v.name();
    EXPECT_LE(v.tile.ctas_per_sm * (total + kReserved), kSm) << v.name();
    EXPECT_LE(l.threads, 1024u) << v.name();
    EXPECT_LE(v.tile.ctas_per_sm * l.threads, 2048u) << v.name();
    // One more stage in every pipeline would not fit, or would make the ring of a decode kernel
    // deeper than it pays: 120 KB where a CTA has the SM to itself, else 80 KB. Nothing else is
    // left lying.
    const SmemLayout s = make_smem_layout(v.tile, l.params.cluster_split);
    const int64_t more = int64_t{v.tile.k_groups} * (s.stage_bytes + s.scale_bytes + 16);
    const int64_t room = v.tile.ctas_per_sm == 1 ? kCtaMost : kSm / v.tile.ctas_per_sm - kReserved;
    const int64_t deepest = v.tile.normal() ? room : v.tile.ctas_per_sm == 1 ? 122880 : 81920;
    const bool deep = int64_t{s.stages + v.tile.k_groups} * s.stage_bytes > deepest;
    EXPECT_TRUE(deep || total + more + 256 > room) << v.name() << ": room for another stage";
    EXPECT_LE(int64_t{s.stages} * s.stage_bytes, deepest) << v.name();
  }
}

TEST(KernelAbiMemory, StagesAreEnough) {
  for (const Variant& v : all_variants()) {
    const KernelParams p = launch_of(v).params;
    // One stage is filled while another is read; two accumulator sets read two K-blocks at a time,
    // and the second begins while the first still holds its stage.
    EXPECT_GE(p.stages, 2) << v.name();
    EXPECT_GE(p.stages * v.tile.blocks, v.tile.sets + 1) << v.name();
  }
}

// A kernel knows its split at launch only: what it is compiled with must not depend on it.
TEST(KernelAbiMemory, StagesAreTheSameForEverySplit) {
  for (const Variant& v : all_variants()) {
    const KernelParams p = launch_of(v).params;
    const SmemLayout compiled = make_smem_layout(v.tile, 1);
    const SmemLayout here = make_smem_layout(v.tile, p.cluster_split);
    EXPECT_EQ(compiled.stage_bytes, here.stage_bytes) << v.name();
    EXPECT_EQ(compiled.scale_bytes, here.scale_bytes) << v.name();
    EXPECT_EQ(compiled.sfb_offset, here.sfb_offset) << v.name();
    EXPECT_EQ(here.stages, p.stages * v.tile.k_groups) << v.name();
    EXPECT_EQ(here.exchange, p.exchange) << v.name();
    EXPECT_EQ(here.scales, p.scales) << v.name();
    EXPECT_EQ(here.barriers, p.barriers) << v.name();
  }
}

TEST(KernelAbiMemory, SfbOfAnyTileFitsItsSlots) {
  for (const KernelRow& row : kKernels) {
    const TileConfig t = parse_kernel(row.name);
    for (int64_t n0 = 0; n0 < 128 * 64; n0 += t.tile_n) {
      const int64_t rows = (n0 + t.tile_n - 1) / 128 - n0 / 128 + 1;
      ASSERT_LE(rows, kSfbSlots) << row.name << ", columns from " << n0;
    }
  }
}

TEST(KernelAbiMemory, BoxesAreWhatTheCopyEngineTakes) {
  for (const Variant& v : all_variants()) {
    const cuda::Launch l = launch_of(v, false, true);
    const KernelParams& p = l.params;
    for (const TensorMap* map : {&p.a, &p.b, &p.sfa}) {
      for (int i = 1; i <= 3; ++i) {
        EXPECT_GE(map->words[i], 1u) << v.name();
        EXPECT_LE(map->words[i], 256u) << v.name();
      }
    }
    EXPECT_EQ(p.a.words[2] % 8, 0u) << v.name() << ": parts of A are whole swizzle patterns";
    EXPECT_EQ(p.b.words[2] % 8, 0u) << v.name() << ": parts of B are whole swizzle patterns";
    EXPECT_EQ(p.sfa.words[1] * 4 % 16, 0u) << v.name() << ": rows of a box are 16-byte pieces";
    if (p.store != StorePath::kCopyEngine) continue;
    EXPECT_EQ(box_bytes(p.d), d_box_bytes(v.tile)) << v.name();
    EXPECT_EQ(box_bytes(p.d) % 128, 0) << v.name() << ": boxes of a warp lie one after the other";
    EXPECT_LE(box_bytes(p.d), staging_bytes(v.tile)) << v.name();
    EXPECT_EQ(v.tile.piece_cols() % d_box_columns(v.tile), 0) << v.name();
    EXPECT_EQ(v.tile.piece_cols() % static_cast<int>(p.d.words[1]), 0) << v.name();
    // Swizzled boxes are as wide as the swizzle.
    const uint64_t swizzle = p.d.words[4] == 3 ? 128 : p.d.words[4] == 2 ? 64 : 0;
    EXPECT_EQ(swizzle > 0, swizzles_d(v.tile)) << v.name();
    if (swizzle > 0) {
      EXPECT_EQ(p.d.words[1] * 2, swizzle) << v.name();
    }
  }
}

// ---------------------------------------------------------------------------------- barriers ----

// What arrives in one round at the barriers of every CTA of a cluster.
struct Recount {
  struct Pipeline {
    int full = 0, plain_full = 0, empty = 0;
  };
  struct Cta {
    std::vector<Pipeline> pipelines;
    int exchange_full = 0, exchange_free = 0, math = 0;
    int tile_full = 0, tile_empty = 0;
  };
  std::vector<Cta> ctas;

  // Asks every thread of every CTA where it arrives.
  Recount(const Variant& v, const cuda::Launch& l) : ctas(l.cluster) {
    for (Cta& cta : ctas) cta.pipelines.resize(static_cast<std::size_t>(v.tile.k_groups));
    for (uint32_t rank = 0; rank < l.cluster; ++rank) {
      for (uint32_t thread = 0; thread < l.threads; ++thread) {
        arrive(v.tile, l.params.cluster_split, rank, static_cast<int>(thread / 32),
               static_cast<int>(thread % 32));
      }
    }
  }

 private:
  void arrive(const TileConfig& t, int cluster_split, uint32_t rank, int warp, int lane) {
    Cta& own = ctas[rank];
    const int math_warps = 4 * t.row_groups() * t.col_groups() * t.k_groups;
    const bool schedules = t.scheduled() && warp == math_warps + 3 * t.k_groups;
    if (warp >= math_warps + 3 * t.k_groups && !schedules) return;  // idle
    // The scheduler lists a tile with one lane; every other warp has read it with one.
    if (t.scheduled() && lane == 0) ++(schedules ? own.tile_full : own.tile_empty);
    if (schedules) return;
    if (warp < math_warps) {
      ++own.math;
      const int pipeline = warp / 4 / (t.row_groups() * t.col_groups());
      for (std::size_t to = 0; to < ctas.size(); ++to) {
        // Lane i tells CTA i: of a multicast that the stage is free, of a split that it has read
        // its sums. Without a multicast lane 0 tells its own CTA.
        const bool tells = lane == static_cast<int>(to);
        if (t.cluster_m * t.cluster_n > 1 && tells) ++ctas[to].pipelines[pipeline].empty;
        if (cluster_split > 1 && tells) ++ctas[to].exchange_free;
      }
      if (t.cluster_m * t.cluster_n == 1 && lane == 0) ++own.pipelines[pipeline].empty;
      // Its first warp announces; every one says that it has written.
      if (cluster_split > 1 && lane == 0) own.exchange_full += warp == 0 ? 2 : 1;
      return;
    }
    // Producers of B, then of A (with SFA where the copy engine brings it), then of other scales.
    const int role = (warp - math_warps) / t.k_groups;
    Pipeline& pipeline = own.pipelines[(warp - math_warps) % t.k_groups];
    const int announces = role < 2 && lane == 0 ? 1 : 0;
    const int brings_sfb = role == 2 && lane < 4 && !t.paired ? 1 : 0;
    // Paired scales: both kinds by rows, where they are plain.
    const int brings_plain = role == 2 ? (t.paired ? 2 : 1) : 0;
    pipeline.full += announces + brings_sfb;
    pipeline.plain_full += announces + brings_sfb + brings_plain;
  }
};

TEST(KernelAbiBarriers, ArrivalsOfEveryThread) {
  for (const Variant& v : all_variants()) {
    const cuda::Launch l = launch_of(v);
    const int split = l.params.cluster_split;
    for (const Recount::Cta& cta : Recount(v, l).ctas) {
      EXPECT_EQ(cta.math, math_threads(v.tile)) << v.name();
      if (v.tile.scheduled()) {
        EXPECT_EQ(cta.tile_full, tile_full_arrivals()) << v.name();
        EXPECT_EQ(cta.tile_empty, tile_empty_arrivals(v.tile)) << v.name();
      }
      for (const Recount::Pipeline& p : cta.pipelines) {
        EXPECT_EQ(p.full, full_arrivals(v.tile, false, false)) << v.name();
        EXPECT_EQ(p.plain_full, full_arrivals(v.tile, true, true)) << v.name();
        EXPECT_EQ(p.empty, empty_arrivals(v.tile)) << v.name();
      }
      if (split == 1) continue;
      EXPECT_EQ(cta.exchange_full, exchange_full_arrivals(v.tile)) << v.name();
      EXPECT_EQ(cta.exchange_free, exchange_free_arrivals(v.tile, split)) << v.name();
    }
  }
}

// The bytes that land in one CTA's stage: every CTA of a multicast brings its box to all of them.
TEST(KernelAbiBarriers, BytesOfAStageAreThoseOfItsBoxes) {
  for (const Variant& v : all_variants()) {
    for (const bool plain : {false, true}) {
      const KernelParams p = launch_of(v, plain).params;
      ASSERT_EQ((p.flags & kPlainSfa) != 0, plain) << v.name();
      for (int blocks = 1; blocks <= v.tile.blocks; ++blocks) {
        const int64_t b = blocks * v.tile.cluster_m * box_bytes(p.b);
        EXPECT_EQ(weight_bytes(v.tile, blocks, plain),
                  b + (v.tile.paired && !plain ? box_bytes(p.sfb_box) : 0))
            << v.name();
        const int64_t a = blocks * (v.tile.tile_m / a_box_rows(v.tile)) * box_bytes(p.a);
        EXPECT_EQ(activation_bytes(v.tile, blocks, plain), a + (plain ? 0 : box_bytes(p.sfa)))
            << v.name();
      }
      const SmemLayout s = make_smem_layout(v.tile, 1);
      EXPECT_EQ(s.stage_bytes, weight_bytes(v.tile, v.tile.blocks, true) +
                                   activation_bytes(v.tile, v.tile.blocks, true))
          << v.name();
      if (!plain) {
        EXPECT_LE(box_bytes(p.sfa), s.sfb_offset) << v.name();
      }
    }
  }
}

// Each of the cluster's pipelines sends each 16 x 8 unit of the tile, 16 bytes a lane, to the CTA
// that owns it, unless that is its own.
TEST(KernelAbiBarriers, BytesOfTheExchangeAreThoseSent) {
  for (const Variant& v : all_variants()) {
    const KernelParams p = launch_of(v).params;
    const TileConfig& t = v.tile;
    const int ranges = p.cluster_split * t.k_groups;
    std::vector<int64_t> sent(static_cast<std::size_t>(p.cluster_split), 0), held(sent);
    std::vector<int> units(sent.size(), 0);
    int number = 0;
    for (int row = 0; row < t.rows(); row += 16) {
      for (int col = 0; col < t.cols(); col += 8, ++number) {
        const auto owner = static_cast<std::size_t>(number / p.share);
        ASSERT_LT(owner, sent.size()) << v.name() << ": a unit without an owner";
        ++units[owner];
        for (int range = 0; range < ranges; ++range) {
          const bool own = static_cast<std::size_t>(range / t.k_groups) == owner;
          for (int lane = 0; lane < 32; ++lane) {
            held[owner] += 4 * int64_t{sizeof(float)};
            if (!own) sent[owner] += 4 * int64_t{sizeof(float)};
          }
        }
      }
    }
    EXPECT_EQ(number, tile_units(t)) << v.name();
    for (std::size_t rank = 0; rank < sent.size(); ++rank) {
      const int owned = owned_units(t, p.share, static_cast<int>(rank) * p.share);
      EXPECT_EQ(owned, units[rank]) << v.name() << ", CTA " << rank;
      EXPECT_EQ(exchanged_bytes(t, owned, p.cluster_split), sent[rank])
          << v.name() << ", CTA " << rank;
      if (ranges > 1) {
        EXPECT_LE(held[rank], p.scales - p.exchange) << v.name();
      }
      EXPECT_LT(sent[rank], 1 << 20) << v.name() << ": more than a barrier counts";
    }
  }
}

// The bytes of one phase of a barrier are counted in 20 bits.
TEST(KernelAbiBarriers, CountsFitABarrier) {
  for (const Variant& v : all_variants()) {
    const int split = launch_of(v).params.cluster_split;
    EXPECT_LT(weight_bytes(v.tile, v.tile.blocks, false) +
                  activation_bytes(v.tile, v.tile.blocks, false),
              1 << 20)
        << v.name();
    for (const int arrivals : {full_arrivals(v.tile, true, true), empty_arrivals(v.tile),
                               exchange_free_arrivals(v.tile, split)}) {
      EXPECT_GE(arrivals, 1) << v.name();
      EXPECT_LT(arrivals, 1 << 20) << v.name();
    }
    EXPECT_EQ(v.tile.threads() % (v.tile.moves_registers() ? 128 : 32), 0) << v.name();
    EXPECT_LE(v.tile.threads(), 1024) << v.name();
  }
}

}  // namespace
}  // namespace oct::abi
