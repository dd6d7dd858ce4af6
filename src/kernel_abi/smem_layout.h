// Where everything lies in a CTA's shared memory, and what every barrier counts: one place for the
// kernels, the launcher and the tests.
//
//   ring        stages of operand tiles, one K-block of A after the other, then of B; 1024-byte
//               aligned for the 128-byte swizzle
//   exchange    what an epilogue hands from thread to thread: either 2 or 4 KB a math warp, or the
//               partial sums that a CTA receives when K is split
//   scales      one slot a stage: SFA of the tile's rows, then SFB, up to four of 128 columns or
//               one of every column, for each K-block
//   barriers    full and empty of every stage, then two for the exchange
//   tiles       kernels of grouped problems: full and empty of every place for a tile, the tiles
#pragma once

#include <cstdint>

#include "kernel_abi/tile_config.h"

namespace oct::abi {

inline constexpr int kBlockK = 128;         // elements, and bytes, of K in a block
inline constexpr int kSfbSlots = 4;         // SFB values of a K-block that a tile may need
inline constexpr int kStagingBytes = 2048;  // of a warp, at least: 16 rows of 128 bytes
inline constexpr int kUnitBytes = 512;      // 16 x 8 partial sums, one float4 a lane
inline constexpr int kPackedPlaces = 12;    // for descriptors of one operand of packed groups
inline constexpr int kTilePlaces = 4;  // tiles that the scheduler of a grouped kernel runs ahead
inline constexpr int kMostSharedMemory = 232448;  // of one CTA on SM90
inline constexpr int kSharedMemoryOfSm = 233472;  // shared by its CTAs, 1 KB of each reserved

OCTET_HD constexpr int round_up(int x, int to) { return (x + to - 1) / to * to; }

struct SmemLayout {
  int stages = 0;  // in all; each pipeline has stages / k_groups of them
  int a_bytes = 0, b_bytes = 0, stage_bytes = 0;
  int sfb_offset = 0;  // in a scale slot
  int scale_bytes = 0;
  int exchange = 0, scales = 0, barriers = 0, total = 0;
};

OCTET_HD constexpr int operand_bytes(int tile) { return tile * kBlockK; }

// In a scale slot: SFA of all K-blocks of the stage first (one copy-engine box), then their SFB.
OCTET_HD constexpr int sfb_offset(const TileConfig& t) {
  return round_up(t.blocks * t.tile_m * 4, t.paired ? 128 : 16);
}
// SFB values of a K-block.
OCTET_HD constexpr int sfb_count(const TileConfig& t) { return t.paired ? t.tile_n : kSfbSlots; }

// Units of 16 x 8 partial sums in a tile, and how many of them each CTA of a cluster receives: CTA
// o owns units [o * share, (o + 1) * share) as far as there are any.
OCTET_HD constexpr int tile_units(const TileConfig& t) { return t.tile_m * t.tile_n / 128; }
OCTET_HD constexpr int unit_share(const TileConfig& t, int cluster_split) {
  return (tile_units(t) + cluster_split - 1) / cluster_split;
}
// Units that a CTA owns whose first one is `first`; none where the shares before have them all.
OCTET_HD constexpr int owned_units(const TileConfig& t, int share, int first) {
  const int left = tile_units(t) - first;
  const int count = share < left ? share : left;
  return count < 0 ? 0 : count;
}

// Columns of a box of D, 16 rows high: 64 or 32 with the copy engine's swizzle; pieces of other
// widths in as few equal boxes as hold rows of at most 192 bytes, or else in one, unswizzled.
OCTET_HD constexpr int d_box_columns(const TileConfig& t) {
  const int width = t.piece_cols();
  if (width % 64 == 0) return 64;
  if (width % 32 == 0) return 32;
  for (int boxes = 1; width / boxes >= 48; ++boxes) {
    if (width % (8 * boxes) == 0 && width / boxes <= 96) return width / boxes;
  }
  return width;
}
OCTET_HD constexpr bool swizzles_d(const TileConfig& t) { return t.piece_cols() % 32 == 0; }
OCTET_HD constexpr int d_box_bytes(const TileConfig& t) { return 16 * d_box_columns(t) * 2; }
OCTET_HD constexpr int staging_bytes(const TileConfig& t) {
  return t.normal() && d_box_bytes(t) > kStagingBytes ? round_up(d_box_bytes(t), 128)
                                                      : kStagingBytes;
}

// Boxes of D that a math warp may have under way: two where the second costs no stage of the ring,
// so that the copy engine reads one while the warp writes the other.
OCTET_HD constexpr int staging_boxes(const TileConfig& t);

OCTET_HD constexpr int exchange_bytes(const TileConfig& t, int cluster_split, int boxes) {
  const int ranges = cluster_split * t.k_groups;
  const int staging = t.math_warps() * staging_bytes(t) * boxes;
  const int partial = ranges > 1 ? unit_share(t, cluster_split) * ranges * kUnitBytes : 0;
  return partial > staging ? partial : staging;
}

// Bytes of the ring that a CTA of the swapped family may have. What a launch requests at its start
// has to be digested at its end, so deeper rings are slower: 120 KB an SM hide the latency of DRAM
// where one CTA has it to itself, 160 KB where two share it (18432x7168, M = 16: 36.0 -> 34.1 us;
// 2112x7168: 7.5 -> 7.2, 2026-11-30).
OCTET_HD constexpr int most_ring_bytes(const TileConfig& t) {
  return t.normal() ? kMostSharedMemory : t.ctas_per_sm == 1 ? 120 * 1024 : 80 * 1024;
}

// Grouped kernels: the scheduler's tiles and their barriers.
OCTET_HD constexpr int tile_bytes(const TileConfig& t) { return t.k_grouped ? 32 : 16; }
OCTET_HD constexpr int tile_list_bytes(const TileConfig& t) {
  return t.scheduled() ? kTilePlaces * (16 + tile_bytes(t)) : 0;
}
// Packed groups: room for a descriptor of each operand, behind all else.
inline constexpr int kMapBytes = 128;
OCTET_HD constexpr int map_bytes(const TileConfig& t) { return t.packed ? 2 * kMapBytes : 0; }

OCTET_HD constexpr SmemLayout layout_with(const TileConfig& t, int cluster_split, int boxes) {
  SmemLayout s;
  s.a_bytes = operand_bytes(t.tile_m);
  s.b_bytes = operand_bytes(t.tile_n);
  s.stage_bytes = t.blocks * (s.a_bytes + s.b_bytes);
  s.sfb_offset = sfb_offset(t);
  s.scale_bytes = round_up(s.sfb_offset + t.blocks * sfb_count(t) * 4, 128);
  const int exchange = exchange_bytes(t, cluster_split, boxes);
  const int room =
      t.ctas_per_sm == 1 ? kMostSharedMemory : kSharedMemoryOfSm / t.ctas_per_sm - 1024;
  const int fixed = exchange + 16 + 128 + tile_list_bytes(t) + (t.packed ? 128 + map_bytes(t) : 0);
  int stages = (room - fixed) / (s.stage_bytes + s.scale_bytes + 16);
  const int most = most_ring_bytes(t) / s.stage_bytes;
  if (stages > most) stages = most;
  stages = stages / t.k_groups * t.k_groups;
  s.stages = stages < 0 ? 0 : stages;
  s.exchange = s.stages * s.stage_bytes;
  s.scales = round_up(s.exchange + exchange, 128);
  s.barriers = s.scales + s.stages * s.scale_bytes;
  s.total = s.barriers + 16 * s.stages + 16 + tile_list_bytes(t);
  if (t.packed) s.total = round_up(s.total, kMapBytes) + map_bytes(t);
  return s;
}

OCTET_HD constexpr int staging_boxes(const TileConfig& t) {
  return t.normal() && layout_with(t, 1, 2).stages == layout_with(t, 1, 1).stages ? 2 : 1;
}

// Paired scales, FP32: C passes through the ring behind the K-blocks of its tile. A stage holds so
// many columns (0: C does not pass here) of one piece of every warpgroup, row by row.
OCTET_HD constexpr int c_columns(const TileConfig& t) {
  if (!t.paired || t.sequential || t.col_groups() != 1 || t.piece_cols() % 32 != 0) return 0;
  const int stage = operand_bytes(t.tile_m) + operand_bytes(t.tile_n);
  return t.piece_cols() % 64 == 0 && 64 * t.row_groups() * 256 <= stage ? 64 : 32;
}
OCTET_HD constexpr int c_stages(const TileConfig& t) {
  return c_columns(t) == 0 ? 0 : t.pieces() * t.piece_cols() / c_columns(t);
}

// As many stages as fit.
OCTET_HD constexpr SmemLayout make_smem_layout(const TileConfig& t, int cluster_split) {
  return layout_with(t, cluster_split, staging_boxes(t));
}

// Offsets in a stage: of K-block `block` of A and of B; in a scale slot: of its SFA and its SFB.
OCTET_HD constexpr int a_tile(const TileConfig& t, int block) {
  return block * operand_bytes(t.tile_m);
}
OCTET_HD constexpr int b_tile(const TileConfig& t, int block) {
  return t.blocks * operand_bytes(t.tile_m) + block * operand_bytes(t.tile_n);
}
OCTET_HD constexpr int sfa_slot(const TileConfig& t, int block) { return block * t.tile_m * 4; }
OCTET_HD constexpr int sfb_slot(const TileConfig& t, int block) {
  return sfb_offset(t) + block * sfb_count(t) * 4;
}

// Offsets among the barriers, with `stages` of one pipeline: where a pipeline's `full` begin, how
// far behind them its `empty` lie, and where the two of the exchange are.
OCTET_HD constexpr int full_barriers(int stages, int pipeline) { return 8 * pipeline * stages; }
OCTET_HD constexpr int empty_after_full(const TileConfig& t, int stages) {
  return 8 * t.k_groups * stages;
}
OCTET_HD constexpr int exchange_barriers(const TileConfig& t, int stages) {
  return 16 * t.k_groups * stages;
}

// ... and, behind those, the `full` and the `empty` of the places for tiles, and the tiles.
OCTET_HD constexpr int tile_barriers(const TileConfig& t, int stages) {
  return exchange_barriers(t, stages) + 16;
}
OCTET_HD constexpr int tile_list(const TileConfig& t, int stages) {
  return tile_barriers(t, stages) + 16 * kTilePlaces;
}
// ... and the room for descriptor 0 (of A) or 1 (of B); barriers begin at a multiple of it.
OCTET_HD constexpr int packed_map(const TileConfig& t, int stages, int which) {
  return round_up(tile_list(t, stages) + kTilePlaces * tile_bytes(t), kMapBytes) +
         which * kMapBytes;
}

// Arrivals that complete a phase of a stage's `full` barrier: the two threads that announce the
// copy engine's bytes, and the lanes that bring scales with plain asynchronous loads.
OCTET_HD constexpr int full_arrivals(const TileConfig& t, bool plain_sfa, bool plain_sfb) {
  return 2 + (t.paired ? (plain_sfb ? 32 : 0) : kSfbSlots) + (plain_sfa ? 32 : 0);
}
// ... of its `empty` barrier: one lane of every math warp that reads it, in every CTA that a
// multicast joins.
OCTET_HD constexpr int empty_arrivals(const TileConfig& t) {
  return 4 * t.groups_per_pipeline() * t.multicast();
}
// ... of the exchange's first, which without an exchange says that the first warpgroup is ahead.
OCTET_HD constexpr int stagger_arrivals() { return 4; }
// ... of the exchange: the CTA announces what its peers will send, and its own math warps say when
// they have written; every math warp of the cluster says when it has read.
OCTET_HD constexpr int exchange_full_arrivals(const TileConfig& t) { return 1 + t.math_warps(); }
OCTET_HD constexpr int exchange_free_arrivals(const TileConfig& t, int cluster_split) {
  return t.math_warps() * cluster_split;
}
// ... of a place for a tile: the scheduler fills it; one lane of every other warp empties it.
OCTET_HD constexpr int tile_full_arrivals() { return 1; }
OCTET_HD constexpr int tile_empty_arrivals(const TileConfig& t) {
  return t.math_warps() + t.producer_warps() - 1;
}
// Threads of the named barrier of the math warps, between writing and reading partial sums inside a
// CTA. (That barriers exist, all threads wait for.)
OCTET_HD constexpr int math_threads(const TileConfig& t) { return 32 * t.math_warps(); }

// Bytes of one stage with `blocks` K-blocks in it: of B (with SFB, where it is a box), and of A
// with SFA; a box of scales always spans the stage.
OCTET_HD constexpr int weight_bytes(const TileConfig& t, int blocks, bool plain_sfb) {
  return blocks * operand_bytes(t.tile_n) + (t.paired && !plain_sfb ? t.blocks * t.tile_n * 4 : 0);
}
// A comes in boxes of this many rows; ragged tiles take only as many as they have rows for.
OCTET_HD constexpr int a_box_rows(const TileConfig& t) {
  return t.ragged() ? t.tile_m / 2 : t.tile_m / t.cluster_n;
}
OCTET_HD constexpr int activation_bytes(const TileConfig& t, int blocks, bool plain_sfa) {
  return blocks * operand_bytes(t.tile_m) + (plain_sfa ? 0 : t.blocks * t.tile_m * 4);
}
// Bytes of the partial sums of `units` units that a CTA of a cluster receives from the others.
OCTET_HD constexpr int exchanged_bytes(const TileConfig& t, int units, int cluster_split) {
  return units * (cluster_split - 1) * t.k_groups * kUnitBytes;
}

}  // namespace oct::abi
