// Intervals and p-values for the mean of paired differences, without assumptions on how they are
// distributed.
//
//   interval   bootstrap: the differences are drawn anew with replacement many times; the interval
//              is between the quantiles of the means that this gives
//   p-value    permutation: if the two sides of a pair could be swapped, every difference could
//   have
//              the other sign; p is the share of sign patterns whose mean is at least as far from 0
//
// Up to kExactPairs differences all sign patterns are gone through and p is exact; beyond, as many
// as there are resamples are drawn and p = (1 + those) / (1 + resamples), which is never 0.
//
// The draws are a function of (seed, count, resamples): series of one length share them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace filigree {

struct ResamplingOptions {
  std::size_t resamples = 2000;
  double confidence = 0.95;
  std::uint64_t seed = 0;
};

struct Interval {
  double low = 0.0, high = 0.0;
};

class PairedResampler {
 public:
  static constexpr std::size_t kExactPairs = 12;

  // For series of `count` differences. Throws Error for a count of 0 or options that make no sense.
  PairedResampler(std::size_t count, const ResamplingOptions& options);

  // Nothing for a single difference.
  std::optional<Interval> interval(std::span<const double> differences) const;
  double p_value(std::span<const double> differences) const;
  // The smallest p that so many differences can give: all of one sign.
  double least_p() const;

 private:
  std::size_t count_;
  ResamplingOptions options_;
  std::vector<std::uint8_t> draws_;  // [resamples, count]: how often each is drawn
  std::vector<std::int8_t> signs_;   // [resamples, count]: 1 or -1
};

// The q-quantile, between neighbours in proportion (as NumPy's default); `sorted` is not empty.
double quantile(std::span<const double> sorted, double q);

}  // namespace filigree
