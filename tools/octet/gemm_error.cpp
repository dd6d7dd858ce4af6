// See gemm_error.h.
#include "gemm_error.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "threads/parallel.h"

namespace octet::tool {
namespace {

constexpr int64_t kMostProducts = int64_t{1} << 29;

double dot(const float* x, const float* y, int64_t k) {
  constexpr int64_t kLanes = 8;  // sums side by side, for the processor's sake
  double sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= k; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      sums[lane] += double{x[i + lane]} * double{y[i + lane]};
    }
  }
  for (; i < k; ++i) sums[0] += double{x[i]} * double{y[i]};
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

}  // namespace

ErrorSample::ErrorSample(const Operand& a, const Operand& b, std::vector<float> bias,
                         bool everything, int32_t threads)
    : a_(a), b_(b), bias_(std::move(bias)), threads_(threads), rows_(a.rows()), cols_(b.rows()) {
  if (!everything && rows_ > 0 && cols_ > 0) {
    const int64_t outputs = std::max<int64_t>(1, kMostProducts / std::max<int64_t>(1, a.k()));
    cols_ = std::min(cols_, outputs);
    rows_ = std::clamp<int64_t>(outputs / cols_, 1, rows_);
  }
}

// Numbers i of [0, count) whose place i * all / count lies in [first, first + length).
std::vector<int64_t> ErrorSample::places_in(int64_t first, int64_t length, int64_t count,
                                            int64_t all) {
  std::vector<int64_t> places;
  if (all == 0) return places;
  for (int64_t i = first * count / all; i < count && i * all / count < first + length; ++i) {
    if (i * all / count >= first) places.push_back(i * all / count);
  }
  return places;
}

void ErrorSample::take(const Tile& tile, octet_type type, const std::byte* d) {
  const int64_t k = a_.k(), element = type == OCTET_F32 ? 4 : 2;
  const std::vector<int64_t> rows = places_in(tile.row, tile.rows, rows_, a_.rows());
  const std::vector<int64_t> cols = places_in(tile.col, tile.cols, cols_, b_.rows());
  const auto width = static_cast<int64_t>(cols.size());
  // Rows of A are held a few at a time: each pass goes through B's rows once.
  const int64_t held =
      std::clamp<int64_t>((int64_t{1} << 22) / std::max({k / 4, width, int64_t{1}}), 1, 256);
  std::vector<float> x(static_cast<std::size_t>(held * k));
  std::vector<double> exact(static_cast<std::size_t>(held * width));
  for (std::size_t first = 0; first < rows.size(); first += static_cast<std::size_t>(held)) {
    const auto count = std::min(held, static_cast<int64_t>(rows.size() - first));
    const int64_t* const row = rows.data() + first;
    for (int64_t i = 0; i < count; ++i) a_.values(row[i], x.data() + i * k);
    oct::threads::parallel_ranges(width, threads_, [&](int64_t from, int64_t to) {
      std::vector<float> y(static_cast<std::size_t>(k));
      for (int64_t j = from; j < to; ++j) {
        const auto col = static_cast<std::size_t>(cols[static_cast<std::size_t>(j)]);
        b_.values(static_cast<int64_t>(col), y.data());
        const double bias = bias_.empty() ? 0 : bias_[col];
        for (int64_t i = 0; i < count; ++i) {
          exact[static_cast<std::size_t>(i * width + j)] =
              dot(x.data() + i * k, y.data(), k) + bias;
        }
      }
    });
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t j = 0; j < width; ++j) {
        const int64_t col = cols[static_cast<std::size_t>(j)];
        float value = 0;
        to_floats(type, d + ((row[i] - tile.row) * tile.cols + col - tile.col) * element, 1,
                  &value);
        add(value, exact[static_cast<std::size_t>(i * width + j)]);
      }
    }
  }
}

void ErrorSample::add(double v, double want) {
  error_ += (v - want) * (v - want);
  square_ += want * want;
  product_ += v * want;
  both_ += v * v + want * want;
  if (std::isnan(worst_)) return;
  worst_ = std::isfinite(v - want) ? std::max(worst_, std::fabs(v - want)) : NAN;
}

nlohmann::json ErrorSample::compare() const {
  nlohmann::json report = {{"rows", rows_}, {"columns", cols_}};
  if (std::isnan(worst_)) {  // JSON has neither NaN nor infinity
    report["relative_error"] = report["difference"] = report["worst_element"] = nullptr;
    return report;
  }
  report["relative_error"] = error_ == 0 ? 0 : std::sqrt(error_ / square_);
  report["difference"] = both_ == 0 ? 0 : 1 - 2 * product_ / both_;
  report["worst_element"] = worst_;
  return report;
}

}  // namespace octet::tool
