// How long two things take that mostly hide each other: a little more than the longer of the two,
// (x^e + y^e)^(1/e) with e = 3.8 = 19/5. Written with + - * / alone, which every processor rounds
// alike: the C library's pow() differs in its last bit between processors (it has a variant for
// those with FMA), and a last bit can decide between two candidates.
#pragma once

#include <bit>
#include <cstdint>

namespace oct::plan {

constexpr double whole_power(double x, int n) {
  double product = 1;
  for (; n > 0; n /= 2, x *= x) {
    if (n % 2 == 1) product *= x;
  }
  return product;
}

// The n-th root of x by Newton's steps from `guess`, which is within a few percent.
constexpr double whole_root(double x, int n, double guess) {
  double y = guess;
  for (int step = 0; step < 5; ++step) {
    const double below = whole_power(y, n - 1);
    y -= (y * below - x) / (n * below);
  }
  return y;
}

// x, y >= 0.
constexpr double longer_of_two(double x, double y) {
  const double most = x < y ? y : x, least = x < y ? x : y;
  if (!(least > 0x1p-14 * most)) return most;  // the power of the quotient is below 2^-53
  const double quotient = least / most;
  // A fifth of the pattern is a fifth of the logarithm, nearly.
  const uint64_t one = std::bit_cast<uint64_t>(1.0);
  const double fifth = std::bit_cast<double>(one - (one - std::bit_cast<uint64_t>(quotient)) / 5);
  const double sum = 1 + whole_power(whole_root(quotient, 5, fifth), 19);  // in (1, 2]
  const double guess = 1 + (sum - 1) * (0.25 - 0.05 * (sum - 1));          // sum^(5/19)
  return most * whole_root(whole_power(sum, 5), 19, guess);
}

}  // namespace oct::plan
