#include <algorithm>
#include <cmath>

#include "filigree/error.h"
#include "filigree/random.h"
#include "filigree/statistics.h"

namespace filigree {
namespace {

constexpr std::uint64_t kDrawStream = std::uint64_t{0xB007} << 40;
constexpr std::uint64_t kSignStream = std::uint64_t{0x516E} << 40;
// Sums in another order differ by rounding; they count as equal.
constexpr double kTolerance = 1e-12;

double sum_of(std::span<const double> values) {
  double sum = 0.0;
  for (const double value : values) sum += value;
  return sum;
}

double magnitude_of(std::span<const double> values) {
  double sum = 0.0;
  for (const double value : values) sum += std::abs(value);
  return sum;
}

}  // namespace

double quantile(std::span<const double> sorted, double q) {
  const double place = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = place - static_cast<double>(below);
  return sorted[below] + part * (sorted[above] - sorted[below]);
}

PairedResampler::PairedResampler(std::size_t count, const ResamplingOptions& options)
    : count_(count), options_(options) {
  require(count > 0, "resampling: there are no differences");
  require(
      options.resamples > 0 && options.confidence > 0.0 && options.confidence < 1.0,
      "resampling: {} resamples at a confidence of {}; take at least 1 and a confidence between "
      "0 and 1",
      options.resamples, options.confidence);
  if (count > 1) {
    draws_.assign(options.resamples * count, 0);
    for (std::size_t r = 0; r < options.resamples; ++r) {
      Random random(options.seed, kDrawStream + r);
      std::uint8_t* draws = draws_.data() + r * count;
      for (std::size_t i = 0; i < count; ++i) {
        std::uint8_t& drawn = draws[random.below(count)];
        // One in 10^500 resamples would need more.
        if (drawn < UINT8_MAX) ++drawn;
      }
    }
  }
  if (count > kExactPairs) {
    signs_.resize(options.resamples * count);
    for (std::size_t r = 0; r < options.resamples; ++r) {
      Random random(options.seed, kSignStream + r);
      for (std::size_t i = 0; i < count; ++i)
        signs_[r * count + i] = (random.next_uint32() >> 31) != 0 ? 1 : -1;
    }
  }
}

std::optional<Interval> PairedResampler::interval(std::span<const double> differences) const {
  require(differences.size() == count_, "resampling: {} differences where {} were announced",
          differences.size(), count_);
  if (count_ < 2) return std::nullopt;
  std::vector<double> means(options_.resamples);
  for (std::size_t r = 0; r < options_.resamples; ++r) {
    const std::uint8_t* draws = draws_.data() + r * count_;
    double sum = 0.0;
    for (std::size_t i = 0; i < count_; ++i) sum += static_cast<double>(draws[i]) * differences[i];
    means[r] = sum / static_cast<double>(count_);
  }
  std::sort(means.begin(), means.end());
  const double tail = 0.5 * (1.0 - options_.confidence);
  return Interval{quantile(means, tail), quantile(means, 1.0 - tail)};
}

double PairedResampler::least_p() const {
  if (count_ > kExactPairs) return 1.0 / static_cast<double>(1 + options_.resamples);
  return 2.0 / static_cast<double>(std::size_t{1} << count_);  // as they are, and all turned
}

double PairedResampler::p_value(std::span<const double> differences) const {
  require(differences.size() == count_, "resampling: {} differences where {} were announced",
          differences.size(), count_);
  const double observed = std::abs(sum_of(differences)) - kTolerance * magnitude_of(differences);
  if (count_ <= kExactPairs) {
    const std::size_t patterns = std::size_t{1} << count_;
    std::size_t as_far = 0;
    for (std::size_t pattern = 0; pattern < patterns; ++pattern) {
      double sum = 0.0;
      for (std::size_t i = 0; i < count_; ++i)
        sum += (pattern >> i & 1) != 0 ? differences[i] : -differences[i];
      if (std::abs(sum) >= observed) ++as_far;
    }
    return static_cast<double>(as_far) / static_cast<double>(patterns);
  }
  std::size_t as_far = 0;
  for (std::size_t r = 0; r < options_.resamples; ++r) {
    const std::int8_t* signs = signs_.data() + r * count_;
    double sum = 0.0;
    for (std::size_t i = 0; i < count_; ++i) sum += static_cast<double>(signs[i]) * differences[i];
    if (std::abs(sum) >= observed) ++as_far;
  }
  return static_cast<double>(1 + as_far) / static_cast<double>(1 + options_.resamples);
}

}  // namespace filigree
