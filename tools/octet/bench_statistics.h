// The few statistics of the benchmark.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace octet::tool {

// The middle value, or the mean of the two in the middle; 0 of nothing.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// (largest - smallest) / median: how far the replays of one measurement lie apart.
inline double spread(const std::vector<double>& values) {
  if (values.empty()) return 0;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double middle = median(values);
  return middle > 0 ? (*high - *low) / middle : 0;
}

// 0 of nothing.
inline double geometric_mean(const std::vector<double>& values) {
  if (values.empty()) return 0;
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

}  // namespace octet::tool
