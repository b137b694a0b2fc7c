#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "filigree/error.h"
#include "filigree/maps.h"
#include "filigree/ops.h"
#include "filigree/runtime.h"

namespace filigree {
namespace {

constexpr std::int64_t kRankPiece = 4096;  // cells of one product

}  // namespace

CorrelationSums::CorrelationSums(std::size_t series)
    : series_(series),
      sums_(series, 0.0),
      products_(series * series, 0.0),
      least_(series, std::numeric_limits<float>::infinity()),
      most_(series, -std::numeric_limits<float>::infinity()) {}

void CorrelationSums::add(const Tensor& cells, std::int64_t count, double weight) {
  const std::int64_t stride = cells.size(1);
  require(cells.size(0) == static_cast<std::int64_t>(series_) && count >= 0 && count <= stride,
          "correlation: {} cells of {} for {} series", count, cells.shape().to_string(), series_);
  if (count == 0) return;
  const Tensor product = matmul(cells, cells, {.transpose_b = true}).value();  // [series, series]
  const float* values = cells.f32();
  parallel_for(static_cast<std::int64_t>(series_), 8, [&](std::int64_t begin, std::int64_t end) {
    for (auto a = static_cast<std::size_t>(begin); a < static_cast<std::size_t>(end); ++a) {
      const float* row = values + static_cast<std::int64_t>(a) * stride;
      double sum = 0.0;
      for (std::int64_t c = 0; c < count; ++c) sum += static_cast<double>(row[c]);
      const auto [least, most] = std::minmax_element(row, row + count);
      least_[a] = std::min(least_[a], *least);
      most_[a] = std::max(most_[a], *most);
      sums_[a] += weight * sum;
      for (std::size_t b = 0; b < series_; ++b)
        products_[a * series_ + b] +=
            weight * static_cast<double>(product.values()[a * series_ + b]);
    }
  });
  weight_ += weight * static_cast<double>(count);
}

CorrelationMatrix CorrelationSums::matrix() const {
  CorrelationMatrix result(series_ * series_, 0.0);
  const auto covariance = [&](std::size_t a, std::size_t b) {
    return products_[a * series_ + b] / weight_ - sums_[a] / weight_ * (sums_[b] / weight_);
  };
  std::vector<double> deviation(series_, 0.0);
  for (std::size_t a = 0; a < series_; ++a)
    if (weight_ > 0.0 && least_[a] < most_[a])
      deviation[a] = std::sqrt(std::max(0.0, covariance(a, a)));
  for (std::size_t a = 0; a < series_; ++a) {
    result[a * series_ + a] = 1.0;
    for (std::size_t b = 0; b < a; ++b) {
      if (!(deviation[a] > 0.0) || !(deviation[b] > 0.0)) continue;
      // The product's two halves may differ by rounding: the matrix is made symmetric.
      const double both = 0.5 * (covariance(a, b) + covariance(b, a));
      result[a * series_ + b] = result[b * series_ + a] =
          std::clamp(both / deviation[a] / deviation[b], -1.0, 1.0);
    }
  }
  return result;
}

std::vector<float> ranks_of(std::span<const float> values) {
  std::vector<std::uint32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return values[a] < values[b]; });
  std::vector<float> ranks(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const auto rank = static_cast<float>(0.5 * static_cast<double>(begin + 1 + end));
    for (; begin < end; ++begin) ranks[order[begin]] = rank;
  }
  return ranks;
}

CorrelationMatrix rank_correlation(std::span<const float> values, std::size_t series,
                                   std::size_t cells, std::size_t stride) {
  const auto count = static_cast<std::int64_t>(cells);
  Tensor ranks = Tensor::empty({static_cast<std::int64_t>(series), count});
  float* out = ranks.mutable_f32();
  const auto middle = static_cast<float>(0.5 * static_cast<double>(cells + 1));
  const float scale = cells > 0 ? 1.0f / static_cast<float>(cells) : 0.0f;
  parallel_for(static_cast<std::int64_t>(series), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto s = static_cast<std::size_t>(begin); s < static_cast<std::size_t>(end); ++s) {
      const std::vector<float> row = ranks_of(values.subspan(s * stride, cells));
      for (std::size_t c = 0; c < cells; ++c) out[s * cells + c] = (row[c] - middle) * scale;
    }
  });
  CorrelationSums sums(series);
  Tensor piece = Tensor::empty({static_cast<std::int64_t>(series), kRankPiece});
  for (std::int64_t first = 0; first < count; first += kRankPiece) {
    const std::int64_t width = std::min(kRankPiece, count - first);
    for (std::int64_t s = 0; s < static_cast<std::int64_t>(series); ++s) {
      float* to = piece.mutable_f32() + s * kRankPiece;
      std::copy_n(out + s * count + first, width, to);
      std::fill(to + width, to + kRankPiece, 0.0f);
    }
    sums.add(piece, width);
  }
  return sums.matrix();
}

}  // namespace filigree
