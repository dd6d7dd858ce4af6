// What planning needs of every kernel of the table, worked out by the compiler: the tile its name
// stands for, and the ring that fits beside a cluster's partial sums. Nothing is parsed when a
// problem is planned.
#pragma once

#include <array>
#include <string_view>

#include "kernel_abi/kernel_table.h"
#include "kernel_abi/smem_layout.h"

namespace oct::plan {

inline constexpr int kLargestCluster = 8;  // that every Hopper device takes

// Of a launch: stages of all pipelines, bytes of shared memory.
struct Ring {
  int stages = 0, total = 0;
};

constexpr Ring make_ring(const abi::TileConfig& tile, int cluster_split) {
  const abi::SmemLayout smem = abi::make_smem_layout(tile, cluster_split);
  return {smem.stages, smem.total};
}

struct KernelFacts {
  abi::TileConfig tile;
  std::array<Ring, kLargestCluster + 1> rings;  // by CTAs of a cluster that share K; 0 is not used
};

namespace detail {
constexpr std::array<KernelFacts, abi::kKernelCount> all_facts() {
  std::array<KernelFacts, abi::kKernelCount> all{};
  for (int i = 0; i < abi::kKernelCount; ++i) {
    KernelFacts& facts = all[static_cast<std::size_t>(i)];
    facts.tile = abi::parse_kernel(abi::kKernels[i].name);
    for (int split = 1; split <= kLargestCluster; ++split) {
      facts.rings[static_cast<std::size_t>(split)] = make_ring(facts.tile, split);
    }
  }
  return all;
}
}  // namespace detail

// In the order of the kernel table.
inline constexpr std::array<KernelFacts, abi::kKernelCount> kKernelFacts = detail::all_facts();

// The kernel's place in the table, or -1.
constexpr int kernel_index(std::string_view name) {
  for (int i = 0; i < abi::kKernelCount; ++i) {
    if (name == abi::kKernels[i].name) return i;
  }
  return -1;
}

}  // namespace oct::plan
