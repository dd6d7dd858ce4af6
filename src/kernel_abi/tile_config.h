// What one kernel is compiled for, and the name that says so. A kernel's name is its whole
// specification: the build, the planner, the launcher and the tests all read it with
// parse_kernel().
//
//   normal_m128n256[_cm2|_cn2][_x2][_o2][_w1][_seq][_g|_1d1d|_kg|_kp]
//                    rows of A on WGMMA's 64-row side
//   swapped_w64t16[_k2][_x2][_b2][_o2][_g]
//                    rows of B (weights) there, tokens up to 128
//
//   cm2, cn2   clusters of 2 along M (B is multicast) or along N (A is multicast)
//   k2         warpgroups that share the tile's range of K between them
//   x2         two accumulator sets in flight
//   b2         K-blocks in one stage of the ring
//   o2         CTAs that share an SM
//   w1         one warpgroup computes all columns of 64 rows
//   seq        a CTA walks all ranges of a split K itself; serves any split and any SM budget
//   g          problems grouped over M: a scheduler warp finds the tiles from metadata on the
//              device
//   1d1d       scales 1x128 on both sides
//   kg         the same, grouped over K: a scheduler warp reads where a group's K lies
//   kp         the same, each group packed into a matrix of its own
//
// How far K is split over a cluster is no part of the name: that is the launch's cluster size.
#pragma once

#include <cstdint>

#include "kernel_abi/host_device.h"

namespace oct::abi {

enum class Family : uint8_t { kNormal, kSwapped };

struct TileConfig {
  Family family = Family::kNormal;
  int tile_m = 0, tile_n = 0;        // of D
  int cluster_m = 1, cluster_n = 1;  // CTAs that share operands by multicast
  int k_groups = 1;                  // pipelines, each with its own range of K
  int sets = 1;                      // accumulator sets in flight
  int blocks = 1;                    // K-blocks in a stage
  int ctas_per_sm = 1;
  bool sequential = false;
  bool one_group = false;  // one warpgroup computes all columns
  bool grouped = false;    // over M
  bool paired = false;     // SFA and SFB 1x128
  bool k_grouped = false;  // over K
  bool packed = false;     // ... each group's matrix as wide as its K
  bool valid = false;

  OCTET_HD constexpr bool normal() const { return family == Family::kNormal; }
  // Extents on WGMMA's 64-row side and on its N side.
  OCTET_HD constexpr int rows() const { return normal() ? tile_m : tile_n; }
  OCTET_HD constexpr int cols() const { return normal() ? tile_n : tile_m; }
  // Warpgroups side by side: over rows, over columns.
  OCTET_HD constexpr int row_groups() const {
    return normal() ? (rows() >= 192 && rows() % 128 != 0 ? 3
                       : rows() >= 128                    ? 2
                                                          : 1)
                    : rows() / 64;
  }
  OCTET_HD constexpr int col_groups() const {
    return normal() && rows() == 64 && cols() >= 128 && !one_group ? 2 : 1;
  }
  // Pieces of 64 x piece_cols() that one warpgroup computes: over rows, over columns.
  OCTET_HD constexpr int row_pieces() const { return rows() / 64 / row_groups(); }
  OCTET_HD constexpr int col_pieces() const { return cols() / col_groups() > 192 ? 2 : 1; }
  OCTET_HD constexpr int piece_cols() const { return cols() / col_groups() / col_pieces(); }
  OCTET_HD constexpr int pieces() const { return row_pieces() * col_pieces(); }

  OCTET_HD constexpr int groups_per_pipeline() const { return row_groups() * col_groups(); }
  OCTET_HD constexpr int math_groups() const { return groups_per_pipeline() * k_groups; }
  OCTET_HD constexpr int math_warps() const { return 4 * math_groups(); }
  // The second warpgroup keeps some K-blocks behind the first, so that one adds C and stores D
  // while the other multiplies.
  OCTET_HD constexpr bool staggered() const { return paired && !sequential && math_groups() == 2; }
  // A scheduler warp lists the tiles for the other roles.
  OCTET_HD constexpr bool scheduled() const { return grouped || k_grouped; }
  // A producer warpgroup that gives registers away pays where accumulators are large.
  OCTET_HD constexpr bool moves_registers() const { return normal() && accumulators() >= 128; }
  OCTET_HD constexpr int producer_warps() const { return 3 * k_groups + (scheduled() ? 1 : 0); }
  OCTET_HD constexpr int producer_threads() const {
    return moves_registers() ? 128 : 32 * producer_warps();
  }
  OCTET_HD constexpr int threads() const { return 32 * math_warps() + producer_threads(); }
  OCTET_HD constexpr int multicast() const { return cluster_m * cluster_n; }
  // Grouped, two pieces a warpgroup: pieces of 64 rows that belong to nobody are neither multiplied
  // nor, where it is half a tile, loaded. Where a warpgroup's pieces lie below each other, the
  // warpgroups take the live ones in turn; where they lie side by side, both share the one that is
  // left, a piece of it each.
  OCTET_HD constexpr bool ragged() const {
    return grouped && normal() && row_groups() == 2 && pieces() == 2;
  }
  // FP32 accumulator registers of a thread, the tensor cores' own included.
  OCTET_HD constexpr int accumulators() const {
    return piece_cols() / 2 * (pieces() + sets + (sequential ? 1 : 0));
  }
  // Partial sums of one CTA, all of which some CTA of the cluster receives.
  OCTET_HD constexpr int partial_bytes() const { return tile_m * tile_n * 4 * k_groups; }
  // Split over a cluster needs room beside the ring for one tile of partial sums.
  OCTET_HD constexpr bool splits_over_cluster() const {
    return multicast() == 1 && !sequential && !scheduled() && partial_bytes() <= 64 * 1024;
  }
  constexpr bool operator==(const TileConfig&) const = default;
};

namespace detail {

struct Reader {
  const char* at;
  constexpr bool eat(const char* word) {
    const char* p = at;
    for (; *word; ++word, ++p) {
      if (*p != *word) return false;
    }
    at = p;
    return true;
  }
  constexpr int number() {
    int value = 0;
    if (*at < '1' || *at > '9') return 0;
    for (; *at >= '0' && *at <= '9' && value < 100000; ++at) value = value * 10 + (*at - '0');
    return value;
  }
};

}  // namespace detail

// The specification a name stands for; .valid is false if it stands for none.
constexpr TileConfig parse_kernel(const char* name) {
  TileConfig t;
  detail::Reader r{name};
  if (r.eat("normal_m")) {
    t.family = Family::kNormal;
    t.tile_m = r.number();
    if (!r.eat("n")) return t;
    t.tile_n = r.number();
    if (r.eat("_cm")) t.cluster_m = r.number();
    if (r.eat("_cn")) t.cluster_n = r.number();
  } else if (r.eat("swapped_w")) {
    t.family = Family::kSwapped;
    t.tile_n = r.number();
    if (!r.eat("t")) return t;
    t.tile_m = r.number();
    if (r.eat("_k")) t.k_groups = r.number();
  } else {
    return t;
  }
  if (r.eat("_x")) t.sets = r.number();
  if (!t.normal() && r.eat("_b")) t.blocks = r.number();
  if (r.eat("_o")) t.ctas_per_sm = r.number();
  if (t.normal() && r.eat("_w1")) t.one_group = true;
  if (t.normal() && r.eat("_seq")) t.sequential = true;
  if (t.normal() && (r.eat("_1d1d") || r.eat("_kg"))) {
    t.paired = true;
    t.k_grouped = r.at[-1] == 'g';
  } else if (t.normal() && r.eat("_kp")) {
    t.paired = t.k_grouped = t.packed = true;
  } else if (r.eat("_g")) {
    t.grouped = true;
  }
  const bool sizes = t.rows() >= 64 && t.rows() <= 256 && t.rows() % 64 == 0 && t.cols() >= 8 &&
                     t.cols() <= 256 && t.cols() % 8 == 0;
  const bool options = t.cluster_m >= 1 && t.cluster_n >= 1 && t.multicast() <= 2 &&
                       (t.k_groups == 1 || t.k_groups == 2 || t.k_groups == 4) &&
                       (t.sets == 1 || t.sets == 2) && (t.blocks == 1 || t.blocks == 2) &&
                       t.ctas_per_sm >= 1 && t.ctas_per_sm <= 4;
  t.valid = *r.at == 0 && sizes && options;
  // Two sets alternate between K-blocks of one piece.
  if (t.valid && t.sets == 2 && t.pieces() != 1) t.valid = false;
  if (t.valid && t.sequential && t.pieces() != 1) t.valid = false;
  if (t.valid && t.one_group && (t.tile_m != 64 || t.tile_n < 128)) t.valid = false;
  // A cluster along M could straddle two groups; ranges of K in a CTA would each need the tiles.
  if (t.valid && t.scheduled() && (t.cluster_m != 1 || t.k_groups != 1)) t.valid = false;
  if (t.valid && t.k_grouped && t.cluster_n != 1) t.valid = false;
  // Promotion with pairs of scales is written for one set of accumulators.
  if (t.valid && t.paired && (t.sets != 1 || t.multicast() != 1)) t.valid = false;
  return t;
}

}  // namespace oct::abi
