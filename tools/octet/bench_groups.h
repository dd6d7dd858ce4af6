// The groups of a problem in the benchmark: how many rows, or how much of K, each has, as the
// problem string says (docs/problem-string.md), and the metadata that a kernel reads. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "octet/octet.hpp"

namespace octet::tool {

struct GroupLayout {
  std::int64_t rows = 0;       // of A and D: all of them; masked: of each group's buffer
  std::int64_t real_rows = 0;  // that some group owns, all groups together
  std::int64_t cols = 0;       // of A and B
  std::int64_t real_k = 0;     // K-grouped: of all groups together; else K
  std::vector<std::uint8_t> metadata;
  std::int64_t counts_at = 0;  // K-grouped: where in it the counts begin, behind the starts
};

// Rows (K-grouped: K) of each group: 0.7 to 1.3 of the average, drawn by the seed, or equal ones.
std::vector<std::int64_t> group_sizes(const GemmProblem& problem);

// Of a dense or batched problem: m rows a matrix, no metadata. An index of each row is long: leave
// it out where sizes are all that is wanted.
GroupLayout group_layout(const GemmProblem& problem, bool with_metadata = true);

}  // namespace octet::tool
