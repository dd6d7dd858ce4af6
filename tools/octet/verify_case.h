// The problems of `octet verify`: fixed operands of moderate and odd shapes, laid out as hostile as
// the rules allow (odd pitches, padding of NaNs, guard bands around D), and the comparison of what
// a device made of them with what the processor did, byte by byte.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench_groups.h"
#include "octet/octet.hpp"

namespace octet::tool {

struct CaseSpec {
  const char* problem;      // a problem string
  int32_t most_split = 16;  // K is cut into 1 to so many ranges
  int64_t pad = 0;          // 16-byte units added to the pitches of A and B
  int64_t d_pad = 0;        // elements added to the pitch of D (and of C)
  int64_t d_shift = 0;      // elements that D starts after a 256-byte boundary
  int64_t scale_pad = 0;  // added to the larger strides of the scales (times 4 where they must be)
  bool in_place = false;  // accumulates into what D holds
  bool any_code = false;  // every code, scales from 2^-40 to 2^40 and 0, some rows with a NaN
};

std::span<const CaseSpec> verify_cases();

// The first output that differs, or the first byte outside D that was written.
struct Difference {
  int64_t outputs = 0;  // of D that differ
  int64_t strays = 0;   // bytes around and between the rows of D that differ
  bool inside = false;  // the first difference is an output; else `place` says where it is
  int64_t group = 0, row = 0, col = 0;
  std::string got, want;  // bits, and the value
  std::string place;
};

class VerifyCase {
 public:
  enum Buffer { kA, kB, kSfa, kSfb, kC, kBias, kMetadata, kD, kBuffers };
  using Bytes = std::vector<uint8_t>;
  using Addresses = std::array<void*, kBuffers>;

  explicit VerifyCase(const CaseSpec& spec);

  const GemmProblem& problem() const { return problem_; }
  int64_t outputs() const {
    const bool by_k = problem_.grouping == OCTET_K_GROUPED;
    return groups_.real_rows * problem_.n * (by_k ? problem_.groups : 1);
  }
  // As uploaded before each run; kD holds guard bands, padding and what D holds before.
  const Bytes& buffer(Buffer which) const { return buffers_[which]; }
  // The arguments of a run with its buffers at these addresses.
  GemmArgs args(const Addresses& base) const;

  // Computes K in `split` ranges on the processor; the whole D buffer.
  Bytes run_on_cpu(int32_t split) const;
  // Both are whole D buffers.
  std::optional<Difference> compare(const Bytes& got, const Bytes& want) const;

 private:
  void lay_out(const CaseSpec& spec);
  void fill_operand(Buffer codes, Buffer scales, uint64_t seed, bool any_code);
  void clear_tails(uint8_t* codes, const octet_matrix& shape) const;
  // Rows that `rows` rows of B have scales for.
  int64_t scale_rows(int64_t rows) const {
    return problem_.granularity == OCTET_1D1D ? rows : ceil_div(rows, 128);
  }
  void fill_values(uint8_t* to, int64_t count, octet_type type, uint64_t seed) const;
  std::string value_text(const uint8_t* at) const;

  GemmProblem problem_;
  GroupLayout groups_;
  int64_t matrices_ = 1;  // of A
  int64_t b_matrices_ = 1, d_matrices_ = 1;
  GemmArgs shape_;                          // strides; no pointers
  std::array<int64_t, kBuffers> offset_{};  // bytes before the operand
  std::array<Bytes, kBuffers> buffers_;
};

}  // namespace octet::tool
