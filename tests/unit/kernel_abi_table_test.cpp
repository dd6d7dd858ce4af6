// The kernel table and the grammar of its names, what follows from a name, and the parameter block.
#include <cstddef>
#include <set>
#include <string>
#include <type_traits>

#include <gtest/gtest.h>

#include "kernel_abi/kernel_params.h"
#include "kernel_abi/kernel_table.h"
#include "octet/octet.h"

namespace oct::abi {
namespace {

// The one name of a configuration, options in the order of the grammar, those of 1 left out.
std::string name_of(const TileConfig& t) {
  const auto option = [](const char* letters, int value) {
    std::string text;
    if (value != 1) text.append("_").append(letters).append(std::to_string(value));
    return text;
  };
  std::string name;
  if (t.family == Family::kNormal) {
    name = "normal_m" + std::to_string(t.tile_m) + "n" + std::to_string(t.tile_n);
    name += option("cm", t.cluster_m) + option("cn", t.cluster_n);
  } else {
    name = "swapped_w" + std::to_string(t.tile_n) + "t" + std::to_string(t.tile_m);
    name += option("k", t.k_groups);
  }
  name += option("x", t.sets) + option("b", t.blocks) + option("o", t.ctas_per_sm);
  return name + (t.one_group ? "_w1" : "") + (t.sequential ? "_seq" : "") +
         (t.grouped     ? "_g"
          : t.packed    ? "_kp"
          : t.k_grouped ? "_kg"
          : t.paired    ? "_1d1d"
                        : "");
}

TEST(KernelAbiTable, NamesAreUniqueAndSayEverything) {
  std::set<std::string> names;
  for (const KernelRow& row : kKernels) {
    const TileConfig t = parse_kernel(row.name);
    ASSERT_TRUE(t.valid) << row.name;
    EXPECT_EQ(name_of(t), row.name);
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " stands twice";
    EXPECT_LT(std::string(row.name).size(), sizeof octet_gemm_plan{}.kernel) << row.name;
    EXPECT_FALSE(std::string(row.serves).empty()) << row.name;
  }
  EXPECT_EQ(static_cast<int>(names.size()), kKernelCount);
  EXPECT_LE(kKernelCount, 80) << "growth of the set is a decision: docs/design.md";
}

TEST(KernelAbiTable, NamesThatStandForNothing) {
  for (const char* name : {
           "",
           "normal",
           "normal_m",
           "normal_m128",
           "normal_m128n",
           "normal_m128n128_",
           "normal_m128n128x2",
           "normal_m128n128_x2 ",
           " normal_m128n128",
           "Normal_m128n128",
           "normal_m0n128",
           "normal_m-64n128",
           "normal_m064n128",
           "normal_m100n128",  // rows come in 64
           "normal_m320n128",  // and end at 256
           "normal_m128n12",   // columns come in 8
           "normal_m128n264",  // and end at 256
           "normal_m128n4",    // and begin at 8
           "normal_m99999999999999999999n128",
           "normal_m128n128_cm0",
           "normal_m128n128_cm3",
           "normal_m128n128_cm2_cn2",  // four CTAs
           "normal_m128n128_k2",       // pipelines are the swapped family's
           "normal_m128n128_b2",       // so are stages of two K-blocks
           "normal_m128n128_o2_x2",    // the order is fixed
           "normal_m128n128_x3",
           "normal_m128n128_o5",
           "normal_m256n128_x2",  // two sets need a piece of their own
           "normal_m128n256_seq",
           "swapped_w64t16_seq",
           "swapped_w64t16_cm2",
           "swapped_w64t16_k3",
           "swapped_w64t16_b3",
           "swapped_w32t16",
           "swapped_w64t4",
           "swapped_w64n16",
           "swapped_m64t16",
           "normal_m128n256_cm2_g",  // a cluster could straddle two groups
           "normal_m128n256_cn2_kg",
           "normal_m128n128_w1",  // one warpgroup has 64 rows
           "normal_m64n96_w1",    // and of so few columns it is the only one anyway
           "swapped_w64t16_w1",
           "swapped_w64t16_k2_g",
           "normal_m128n128_g_x2",
           "normal_m128n64_g_seq",
           "cpu",
       }) {
    EXPECT_FALSE(parse_kernel(name).valid) << name;
  }
  for (const KernelRow& row : kKernels) {
    const std::string name = row.name;
    for (std::size_t cut = 0; cut < name.size(); ++cut) {
      const TileConfig t = parse_kernel(name.substr(0, cut).c_str());
      if (t.valid) {
        EXPECT_EQ(name_of(t), name.substr(0, cut));
      }
    }
    EXPECT_FALSE(parse_kernel((name + "x").c_str()).valid) << name;
  }
}

// Warpgroups and their pieces cover the tile, in widths that WGMMA has.
TEST(KernelAbiTable, PiecesCoverTheTile) {
  for (const KernelRow& row : kKernels) {
    const TileConfig t = parse_kernel(row.name);
    EXPECT_EQ(t.row_groups() * t.row_pieces() * 64, t.rows()) << row.name;
    EXPECT_EQ(t.col_groups() * t.col_pieces() * t.piece_cols(), t.cols()) << row.name;
    EXPECT_EQ(t.piece_cols() % 8, 0) << row.name;
    EXPECT_LE(t.piece_cols(), 256) << row.name;
    EXPECT_EQ(t.tile_m * t.tile_n, t.rows() * t.cols()) << row.name;
    EXPECT_EQ(t.tile_m % t.cluster_n, 0) << row.name;
    EXPECT_EQ(t.tile_n % t.cluster_m, 0) << row.name;
    EXPECT_EQ(t.math_warps(), 4 * t.row_groups() * t.col_groups() * t.k_groups) << row.name;
    EXPECT_EQ(t.threads() % 32, 0) << row.name;
    EXPECT_GE(t.producer_threads(), 32 * t.producer_warps()) << row.name;
    // Registers move between whole warpgroups; of a thread's 255 and of the SM's 65536 the
    // accumulators are a part.
    if (t.moves_registers()) {
      EXPECT_EQ(t.threads() % 128, 0) << row.name;
    }
    EXPECT_LE(t.accumulators(), 232) << row.name;
    EXPECT_LE(t.ctas_per_sm * 32 * t.math_warps() * t.accumulators(), 56000) << row.name;
    // A cluster shares operands or K, never both.
    if (t.splits_over_cluster()) {
      EXPECT_EQ(t.cluster_m * t.cluster_n, 1) << row.name;
    }
  }
}

// The kernels are chosen so that every M has a narrow tile, and any split has a kernel.
TEST(KernelAbiTable, HoldsWhatThePlannerCountsOn) {
  bool sequential = false;
  std::set<int> tokens, split_tokens;
  for (const KernelRow& row : kKernels) {
    const TileConfig t = parse_kernel(row.name);
    if (t.grouped || t.paired) continue;
    sequential |= t.sequential;
    if (!t.normal()) tokens.insert(t.tile_m);
    if (!t.normal() && t.splits_over_cluster()) split_tokens.insert(t.tile_m);
  }
  EXPECT_TRUE(sequential);
  EXPECT_EQ(tokens, (std::set<int>{8, 16, 32, 64}));
  EXPECT_EQ(split_tokens, tokens);
}

// Weight gradients: any split of each kind, and never a cluster that could straddle two groups.
TEST(KernelAbiTable, HoldsWhatWeightGradientsNeed) {
  std::set<std::string> sequential;
  for (const KernelRow& row : kKernels) {
    const TileConfig t = parse_kernel(row.name);
    if (!t.paired) continue;
    if (t.sequential) sequential.insert(t.packed ? "packed" : t.k_grouped ? "grouped" : "dense");
    EXPECT_EQ(t.multicast() * t.k_groups, 1) << row.name;
    EXPECT_FALSE(t.k_grouped && t.splits_over_cluster()) << row.name;
    EXPECT_EQ(t.producer_warps(), t.k_grouped ? 4 : 3) << row.name;
  }
  EXPECT_EQ(sequential, (std::set<std::string>{"packed", "grouped", "dense"}));
}

// Grouped problems likewise: a narrow tile for every number of rows, and any split.
TEST(KernelAbiTable, HoldsWhatGroupedProblemsNeed) {
  bool sequential = false;
  std::set<int> heights;
  for (const KernelRow& row : kKernels) {
    const TileConfig t = parse_kernel(row.name);
    if (!t.grouped) continue;
    sequential |= t.sequential;
    heights.insert(t.tile_m);
    // CTAs beside each other along N have one group.
    EXPECT_EQ(t.cluster_m * t.k_groups, 1) << row.name;
    EXPECT_FALSE(t.splits_over_cluster()) << row.name;
    EXPECT_EQ(t.producer_warps(), 4) << row.name;
  }
  EXPECT_TRUE(sequential);
  EXPECT_EQ(heights, (std::set<int>{8, 16, 32, 64, 128, 256}));
}

// The parameter block is copied as bytes into constant memory, and read by code of another
// compiler.
TEST(KernelAbiParams, LayoutIsPlain) {
  static_assert(std::is_trivially_copyable_v<KernelParams>);
  static_assert(std::is_standard_layout_v<KernelParams>);
  static_assert(sizeof(TensorMap) == 128 && alignof(TensorMap) == 64);
  EXPECT_LE(sizeof(KernelParams), 4096u);  // that every driver takes
  const KernelParams p;
  const auto offset = [&p](const auto& field) {
    return reinterpret_cast<const char*>(&field) - reinterpret_cast<const char*>(&p);
  };
  for (const TensorMap* map : {&p.a, &p.b, &p.sfa, &p.d}) EXPECT_EQ(offset(*map) % 64, 0);
  // What is read before the first request lies before the first tensor map.
  for (const auto at : {offset(p.stages), offset(p.barriers), offset(p.flags), offset(p.order),
                        offset(p.cut), offset(p.share), offset(p.sfb)}) {
    EXPECT_LT(at, offset(p.b));
  }
  EXPECT_LE(offset(p.b), 256);
}

}  // namespace
}  // namespace oct::abi
