// A model whose MLPs are replaced by what features write: at every layer the features that are
// active for what the MLP would have read in this very run, what they write in place of its output.
// The first position keeps its MLPs, as in training.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "filigree/features.h"
#include "filigree/taps.h"

namespace filigree {

class FeatureReplacement {
 public:
  // All layers, or one: then the features of earlier layers are active as in the plain run. The
  // dictionary must outlive it, and it the runs.
  explicit FeatureReplacement(const FeatureDictionary& dictionary,
                              std::optional<std::int64_t> only = std::nullopt);

  // For runs one after the other, each from the embeddings.
  void add_to(Taps& taps);

 private:
  void read(std::int64_t layer, const Tensor& inputs);  // [B, T, width]
  Variable write(std::int64_t layer, const Variable& output) const;

  const FeatureDictionary& dictionary_;
  std::optional<std::int64_t> only_;
  std::vector<Tensor> written_;  // of each target so far, [B * T, width]
};

// The output of the MLPs set to its mean from the second position on: all layers, or one. `means`
// are [width] of each layer.
void ablate_mlps(Taps& taps, const FeatureHooks& hooks, const std::vector<Tensor>& means,
                 std::optional<std::int64_t> only = std::nullopt);

}  // namespace filigree
