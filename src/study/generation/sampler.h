// Chooses the next token from logits.
//
//   p_i = softmax(logits / temperature)_i, over the `top_k` largest logits, then over the fewest of
//   those whose probabilities sum to at least `top_p`; what is left is scaled to sum to 1.
//
// Temperature 0 takes the largest logit. Equal logits are ranked by id, the smaller first, so that
// a choice never depends on sorting. Minus infinity excludes a token.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "text/token_id.h"

namespace filigree::study {

struct SamplingOptions {
  double temperature = 1.0;  // at least 0
  std::int64_t top_k = 0;    // 0: all
  double top_p = 1.0;        // in (0, 1]
};

class Sampler {
 public:
  // The same seed and stream give the same choices. Throws Error for options out of range.
  Sampler(const SamplingOptions& options, std::uint64_t seed, std::uint64_t stream = 0);

  // Throws Error naming the first logit that is NaN or plus infinity, or when every token is
  // excluded.
  TokenId choose(std::span<const float> logits);

 private:
  struct Candidate {
    float logit;
    TokenId id;
  };
  void keep_most_probable();

  SamplingOptions options_;
  Random random_;
  std::vector<Candidate> candidates_;  // kept between calls for its memory
  std::vector<double> weights_;
};

}  // namespace filigree::study
