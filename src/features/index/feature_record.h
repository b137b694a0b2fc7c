// What is known of a feature from the text that an index was made of.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "text/token_id.h"

namespace filigree {

// How often activations of each size occur: bins of an eighth of an octave, as many as 16 octaves
// below the largest have; what is smaller counts in the lowest.
class ActivationHistogram {
 public:
  static constexpr int kBins = 128;

  void add(float value, std::uint64_t count = 1);

  std::uint64_t total() const { return total_; }
  // The activation below which a share of them lies, within a bin's width.
  double quantile(double share) const;
  // By `bins` equal steps from `low` to `high`: shares that sum to 1.
  std::vector<double> shares(int bins, double low, double high) const;

  // Bins as files have them: a number that rises with the size, and how many.
  static int bin_of(float value);
  static float lower_bound(int bin);
  int first_bin() const { return first_; }
  const std::array<std::uint64_t, kBins>& counts() const { return counts_; }
  // Throws Error for a bin that no positive number has.
  void add_to_bin(int bin, std::uint64_t count);

 private:
  int first_ = 0;  // bin of counts_[0]
  std::uint64_t total_ = 0;
  std::array<std::uint64_t, kBins> counts_ = {};
};

// A token at which the feature is active, with those around it.
struct FeatureExample {
  std::uint64_t position = 0;           // of the token in the text, the first being 0
  float value = 0;                      // the activation there
  std::int64_t centre = 0;              // which of the tokens it is
  std::vector<TokenId> tokens = {};     // in the order of the text
  std::vector<float> activations = {};  // of each; three digits are kept
};

struct FeatureRecord {
  std::uint64_t count = 0;  // tokens at which it is active
  float min = 0, max = 0;   // of its activations there
  ActivationHistogram histogram = {};
  std::vector<FeatureExample> top = {};      // the largest, each of another window
  std::vector<FeatureExample> sampled = {};  // of all windows it is active in, by chance

  bool active() const { return count > 0; }
  double quantile(double share) const;
};

// A range of activations with the examples that are in it.
struct FeatureBand {
  double from = 0, to = 1;  // quantiles
  std::vector<const FeatureExample*> examples = {};
};
// `count` bands of equal shares, the highest first, with at most so many examples each.
std::vector<FeatureBand> quantile_bands(const FeatureRecord& record, int count,
                                        std::size_t examples);

}  // namespace filigree
