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
  d_.resize(static_cast<std::size_t>(rows_ * cols_));
}

void ErrorSample::take(int64_t row, int64_t rows, octet_type type, const std::byte* d) {
  const int64_t element = type == OCTET_F32 ? 4 : 2;
  for (int64_t i = 0; i < rows_; ++i) {
    if (row_at(i) < row || row_at(i) >= row + rows) continue;
    for (int64_t j = 0; j < cols_; ++j) {
      to_floats(type, d + ((row_at(i) - row) * b_.rows() + col_at(j)) * element, 1,
                &d_[static_cast<std::size_t>(i * cols_ + j)]);
    }
  }
}

nlohmann::json ErrorSample::compare() const {
  const int64_t k = a_.k();
  // Rows of A are held a few at a time: each pass goes through B once.
  const int64_t held = std::clamp<int64_t>((int64_t{1} << 24) / std::max<int64_t>(k, 1), 1, 256);
  std::vector<double> exact(d_.size());
  std::vector<float> x(static_cast<std::size_t>(held * k));
  for (int64_t first = 0; first < rows_; first += held) {
    const int64_t count = std::min(held, rows_ - first);
    for (int64_t i = 0; i < count; ++i) a_.values(row_at(first + i), x.data() + i * k);
    oct::threads::parallel_ranges(cols_, threads_, [&](int64_t from, int64_t to) {
      std::vector<float> y(static_cast<std::size_t>(k));
      for (int64_t j = from; j < to; ++j) {
        b_.values(col_at(j), y.data());
        const double bias = bias_.empty() ? 0 : bias_[static_cast<std::size_t>(col_at(j))];
        for (int64_t i = 0; i < count; ++i) {
          exact[static_cast<std::size_t>((first + i) * cols_ + j)] =
              dot(x.data() + i * k, y.data(), k) + bias;
        }
      }
    });
  }
  double error = 0, square = 0, product = 0, both = 0, worst = 0;
  for (std::size_t i = 0; i < d_.size(); ++i) {
    const double v = d_[i], want = exact[i];
    error += (v - want) * (v - want);
    square += want * want;
    product += v * want;
    both += v * v + want * want;
    worst = std::isfinite(v - want) ? std::max(worst, std::fabs(v - want)) : NAN;
    if (std::isnan(worst)) break;
  }
  nlohmann::json report = {{"rows", rows_}, {"columns", cols_}};
  if (std::isnan(worst)) {  // JSON has neither NaN nor infinity
    report["relative_error"] = report["difference"] = report["worst_element"] = nullptr;
    return report;
  }
  report["relative_error"] = error == 0 ? 0 : std::sqrt(error / square);
  report["difference"] = both == 0 ? 0 : 1 - 2 * product / both;
  report["worst_element"] = worst;
  return report;
}

}  // namespace octet::tool
