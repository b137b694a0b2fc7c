#include <algorithm>
#include <cmath>
#include <limits>

#include "filigree/error.h"
#include "filigree/generation_study.h"

namespace filigree::study {

Sampler::Sampler(const SamplingOptions& options, std::uint64_t seed, std::uint64_t stream)
    : options_(options), random_(seed, stream) {
  require(options.temperature >= 0.0 && std::isfinite(options.temperature),
          "sampling: temperature {} is not a number of at least 0", options.temperature);
  require(options.top_k >= 0, "sampling: top-k {} is negative; 0 keeps all tokens", options.top_k);
  require(options.top_p > 0.0 && options.top_p <= 1.0,
          "sampling: top-p {} is not above 0 and at most 1", options.top_p);
}

// Leaves the top_k best candidates, or all, in order of rank when rank matters.
void Sampler::keep_most_probable() {
  const auto before = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  };
  const auto k = static_cast<std::size_t>(options_.top_k);
  if (k > 0 && k < candidates_.size()) {
    const auto end = candidates_.begin() + static_cast<std::ptrdiff_t>(k);
    std::partial_sort(candidates_.begin(), end, candidates_.end(), before);
    candidates_.erase(end, candidates_.end());
  } else if (options_.top_p < 1.0) {
    std::sort(candidates_.begin(), candidates_.end(), before);
  }
}

TokenId Sampler::choose(std::span<const float> logits) {
  constexpr float kExcluded = -std::numeric_limits<float>::infinity();
  candidates_.clear();
  float largest = kExcluded;
  TokenId best = -1;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const float logit = logits[i];
    if (logit == kExcluded) continue;
    if (!std::isfinite(logit))
      fail("sampling: the logit of token {} is {}; the model's weights are damaged", i, logit);
    candidates_.push_back({logit, static_cast<TokenId>(i)});
    if (logit > largest) largest = logit, best = static_cast<TokenId>(i);
  }
  require(!candidates_.empty(), "sampling: none of the {} tokens has a probability", logits.size());
  if (options_.temperature == 0.0) return best;

  keep_most_probable();
  weights_.clear();
  double total = 0.0;
  for (const Candidate& candidate : candidates_) {
    // The difference first: a tiny temperature then gives 0, never infinity minus infinity.
    const double gap = static_cast<double>(candidate.logit) - static_cast<double>(largest);
    weights_.push_back(gap == 0.0 ? 1.0 : std::exp(gap / options_.temperature));
    total += weights_.back();
  }
  if (options_.top_p < 1.0) {
    const double wanted = options_.top_p * total;
    double kept = 0.0;
    std::size_t count = 0;
    while (count < weights_.size() && kept < wanted) kept += weights_[count++];
    weights_.resize(count);
    total = kept;
  }

  double left = random_.uniform_double() * total;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    left -= weights_[i];
    if (left < 0.0) return candidates_[i].id;
  }
  // Rounding can leave a remainder: it belongs to the last token that has a probability.
  std::size_t last = weights_.size();
  while (last > 1 && weights_[last - 1] == 0.0) --last;
  return candidates_[last - 1].id;
}

}  // namespace filigree::study
