// A small deterministic generator: the same numbers on every machine and with every standard
// library, so that a seed in a problem string names its data for good.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>

namespace oct::testing_support {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t bits() {  // splitmix64
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }  // [0, 1)
  int64_t between(int64_t low, int64_t high) {                           // both included
    return low + static_cast<int64_t>(bits() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(double probability) { return unit() < probability; }

  // Uniform in the logarithm; low >= 1.
  int64_t log_uniform(int64_t low, int64_t high) {
    const double x =
        std::exp(std::log(static_cast<double>(low)) +
                 unit() * std::log(static_cast<double>(high + 1) / static_cast<double>(low)));
    const auto n = static_cast<int64_t>(x);
    return n < low ? low : n > high ? high : n;
  }
  // Mean 0, variance 1, of twelve uniforms: bounded by 6.
  float normal() {
    const uint64_t x = bits(), y = bits(), z = bits();
    double sum = -6.0;
    for (int shift = 0; shift < 64; shift += 16) {
      sum += static_cast<double>((x >> shift & 0xffff) + (y >> shift & 0xffff) +
                                 (z >> shift & 0xffff)) /
             65536.0;
    }
    return static_cast<float>(sum);
  }
  template <typename T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[bits() % values.size()];
  }

 private:
  uint64_t state_;
};

}  // namespace oct::testing_support
