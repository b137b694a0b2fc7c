#include <algorithm>
#include <bit>
#include <cmath>

#include "filigree/error.h"
#include "filigree/features.h"

namespace filigree {
namespace {

// The exponent and the three highest digits of a float: eight bins an octave.
constexpr int kBinShift = 20;
constexpr int kLastBin = 0x7F800000 >> kBinShift;

}  // namespace

int ActivationHistogram::bin_of(float value) {
  return static_cast<int>(std::bit_cast<std::uint32_t>(value) >> kBinShift);
}

float ActivationHistogram::lower_bound(int bin) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bin) << kBinShift);
}

void ActivationHistogram::add(float value, std::uint64_t count) {
  if (value > 0.0f) add_to_bin(std::min(bin_of(value), kLastBin - 1), count);
}

void ActivationHistogram::add_to_bin(int bin, std::uint64_t count) {
  require(bin >= 0 && bin < kLastBin, "features: no activation has the bin {}", bin);
  if (total_ == 0) first_ = std::max(0, bin - (kBins - 1));
  total_ += count;
  if (const int beyond = bin - (first_ + kBins - 1); beyond > 0) {
    // What falls out at the lower end stays in the lowest bin.
    std::array<std::uint64_t, kBins> moved = {};
    for (int i = 0; i < kBins; ++i)
      moved[static_cast<std::size_t>(std::max(0, i - beyond))] +=
          counts_[static_cast<std::size_t>(i)];
    counts_ = moved;
    first_ += beyond;
  }
  counts_[static_cast<std::size_t>(std::max(0, bin - first_))] += count;
}

double ActivationHistogram::quantile(double share) const {
  const double wanted = share * static_cast<double>(total());
  double below = 0;
  for (int i = 0; i < kBins; ++i) {
    const auto count = static_cast<double>(counts_[static_cast<std::size_t>(i)]);
    if (count > 0 && below + count >= wanted) {
      const double low = lower_bound(first_ + i), high = lower_bound(first_ + i + 1);
      return low + (high - low) * std::max(0.0, wanted - below) / count;
    }
    below += count;
  }
  return 0;
}

std::vector<double> ActivationHistogram::shares(int bins, double low, double high) const {
  std::vector<double> shares(static_cast<std::size_t>(bins), 0.0);
  const double step = (high - low) / bins, all = static_cast<double>(total());
  if (all == 0) return shares;
  for (int i = 0; i < kBins; ++i) {
    const auto count = static_cast<double>(counts_[static_cast<std::size_t>(i)]);
    if (count == 0) continue;
    // A bin is spread over the steps that it overlaps.
    double from = std::clamp<double>(lower_bound(first_ + i), low, high);
    const double to = std::clamp<double>(lower_bound(first_ + i + 1), low, high);
    const auto place = [&](double value) {
      return std::clamp(step > 0 ? static_cast<int>((value - low) / step) : 0, 0, bins - 1);
    };
    if (to <= from) {
      shares[static_cast<std::size_t>(place(from))] += count / all;
      continue;
    }
    const double width = to - from;
    for (int b = place(from); b < bins && from < to; ++b) {
      const double end = b == bins - 1 ? to : std::min(to, low + step * (b + 1));
      shares[static_cast<std::size_t>(b)] += count / all * std::max(0.0, end - from) / width;
      from = std::max(from, end);
    }
  }
  return shares;
}

double FeatureRecord::quantile(double share) const {
  return active() ? std::clamp<double>(histogram.quantile(share), min, max) : 0.0;
}

std::vector<FeatureBand> quantile_bands(const FeatureRecord& record, int count,
                                        std::size_t examples) {
  std::vector<FeatureBand> bands;
  for (int b = 0; b < count; ++b) {
    FeatureBand band{1.0 - (b + 1.0) / count, 1.0 - static_cast<double>(b) / count, {}};
    const double low = record.quantile(band.from), high = record.quantile(band.to);
    for (const FeatureExample& example : record.sampled) {
      const bool inside =
          (example.value > low || b == count - 1) && (example.value <= high || b == 0);
      if (inside && band.examples.size() < examples) band.examples.push_back(&example);
    }
    bands.push_back(std::move(band));
  }
  return bands;
}

}  // namespace filigree
