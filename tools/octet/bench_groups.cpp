// See bench_groups.h.
#include "bench_groups.h"

#include <algorithm>
#include <cstring>
#include <string>

#include <fmt/format.h>

namespace octet::tool {
namespace {

std::int64_t round_up(std::int64_t x, std::int64_t to) { return ceil_div(x, to) * to; }

class Seeded {  // splitmix64
 public:
  explicit Seeded(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits() {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  std::int64_t between(std::int64_t low, std::int64_t high) {  // both included
    return low + static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(high - low + 1));
  }

 private:
  std::uint64_t state_;
};

template <typename T>
std::vector<std::uint8_t> bytes_of(const std::vector<std::int64_t>& numbers) {
  std::vector<std::uint8_t> bytes(numbers.size() * sizeof(T));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const T x = static_cast<T>(numbers[i]);
    std::memcpy(&bytes[i * sizeof(T)], &x, sizeof x);
  }
  return bytes;
}

// What the groups drawn have together.
void must_be_rows(const GemmProblem& p, std::int64_t rows) {
  if (rows <= INT32_MAX) return;
  throw Error(OCTET_UNSUPPORTED,
              fmt::format("{}: its groups have {} rows together: must have fewer than 2^31",
                          p.to_string(), rows));
}

}  // namespace

std::vector<std::int64_t> group_sizes(const GemmProblem& p) {
  Seeded random(p.seed ^ 0x67726f757073u);
  const std::int64_t average = p.grouping == OCTET_K_GROUPED ? p.k : p.m;
  const std::int64_t low = (7 * average + 9) / 10, high = 13 * average / 10;
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(p.groups));
  for (std::int64_t& size : sizes) {
    size = p.even != 0 || low >= high ? average : random.between(low, high);
    if (p.packed != 0) size = (size + 64) / 128 * 128;
    if (p.grouping == OCTET_MASKED) size = std::min(size, p.max_m);
  }
  return sizes;
}

GroupLayout group_layout(const GemmProblem& p, bool with_metadata) {
  GroupLayout out;
  out.cols = out.real_k = p.k;
  if (p.grouping == OCTET_DENSE || p.grouping == OCTET_BATCHED) {
    out.rows = p.m;
    out.real_rows = p.m * p.groups;
    return out;
  }
  const std::vector<std::int64_t> sizes = group_sizes(p);
  std::vector<std::int64_t> numbers;
  if (p.grouping == OCTET_K_GROUPED) {
    out.rows = out.real_rows = p.m;
    out.cols = out.real_k = 0;
    for (const std::int64_t size : sizes) {
      if (p.packed == 0) numbers.push_back(out.cols);
      out.cols += round_up(size, 128);
      out.real_k += size;
    }
    out.counts_at = static_cast<std::int64_t>(numbers.size()) * (p.index_type == OCTET_I64 ? 8 : 4);
    numbers.insert(numbers.end(), sizes.begin(), sizes.end());
  } else {
    for (const std::int64_t size : sizes) out.real_rows += size;
  }
  switch (p.grouping) {
    case OCTET_CONTIGUOUS:
      for (const std::int64_t size : sizes) out.rows += round_up(size, p.alignment);
      must_be_rows(p, out.rows);
      if (with_metadata) {
        numbers.reserve(static_cast<std::size_t>(out.rows));
        for (std::size_t g = 0; g < sizes.size(); ++g) {
          const auto owned = static_cast<std::size_t>(sizes[g]),
                     padded = static_cast<std::size_t>(round_up(sizes[g], p.alignment));
          numbers.insert(numbers.end(), owned, static_cast<std::int64_t>(g));
          numbers.insert(numbers.end(), padded - owned, -1);
        }
      }
      break;
    case OCTET_OFFSETS:
      numbers.push_back(0);
      for (const std::int64_t size : sizes) numbers.push_back(numbers.back() + size);
      out.rows = numbers.back();
      break;
    case OCTET_ALIGNED:
      for (const std::int64_t size : sizes) {
        out.rows = round_up(out.rows, p.alignment) + size;
        numbers.push_back(out.rows);
      }
      break;
    case OCTET_MASKED:
      numbers = sizes;
      out.rows = p.max_m;
      break;
    default: break;
  }
  if (p.grouping != OCTET_K_GROUPED) must_be_rows(p, out.rows);
  if (!with_metadata) return out;
  out.metadata =
      p.index_type == OCTET_I64 ? bytes_of<std::int64_t>(numbers) : bytes_of<std::int32_t>(numbers);
  return out;
}

}  // namespace octet::tool
