// How the operands of a benchmark lie in memory: enough sets of them that weights come from DRAM
// and not from the L2 cache when the sets are used in turn. Pure: addresses in, arguments out.
//
// Leading dimensions are the least that the rules allow, as callers have them. Scales of B are
// pitched by a multiple of 4, so that cuBLASLt's block-scaled mode takes the same ones.
#pragma once

#include <cstdint>

#include "bench_groups.h"
#include "octet/octet.hpp"

namespace octet::tool {

// One operand of one set; all sets of it lie `bytes` apart in one buffer.
struct OperandExtent {
  std::int64_t ld = 0;            // elements; scales: the stride that is not 1
  std::int64_t group_stride = 0;  // elements; 0 with one group
  std::int64_t bytes = 0;         // of one set, a multiple of 256; 0: no such operand
};

struct OperandLayout {
  OperandExtent a, b, sfa, sfb, c, d, bias;
  GroupLayout groups;
  int sets = 0;
};

// Bytes that the sets together exceed: several times any L2 cache.
inline constexpr std::int64_t kColdBytes = std::int64_t{256} << 20;
inline constexpr int kFewestSets = 3;

// Throws Error (OCTET_UNSUPPORTED) for groupings that there are no operands for.
OperandLayout layout_of(const GemmProblem& problem, bool with_metadata = true);

// Base of every operand's buffer.
struct OperandBases {
  char *a = nullptr, *b = nullptr, *sfa = nullptr, *sfb = nullptr;
  char *c = nullptr, *d = nullptr, *bias = nullptr, *workspace = nullptr;
  char* metadata = nullptr;  // of the groups, the same for all sets
};
// The arguments of set `set`. `workspace_bytes` as the plan says.
GemmArgs args_of(const GemmProblem& problem, const OperandLayout& layout, const OperandBases& bases,
                 int set, std::int64_t workspace_bytes);

// Launches in one replay: at least 4 ms of work if a launch takes `least_us`, every set equally
// often.
int launches_for(double least_us, int sets);
inline constexpr double kLeastReplayUs = 4000;

}  // namespace octet::tool
