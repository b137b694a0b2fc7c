// Runs in which features are other than they would be: what a feature writes to MLP outputs is
// changed by (value - activation) times its decoder rows, and everything behind is computed again.
//
//   L5F123=8     set to 8, wherever in the text; 0 takes it away, negative ones turn it round
//   L5F123=+8    8 more than it is (also L5F123+=8)
//   L5F123*=-2   times -2
//   L5F123@-1=8  at the last token only; the first is 0, negative ones count from the end
//
// The first token, which features are not trained on, is left as it is unless it is named.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/component.h"
#include "base/names.h"
#include "features/dictionary.h"
#include "nn/taps.h"

namespace filigree {

enum class SteeringKind { kSet, kAdd, kMultiply };
template <>
inline constexpr auto kNames<SteeringKind> =
    std::to_array<Named<SteeringKind>>({{SteeringKind::kSet, "set"},
                                        {SteeringKind::kAdd, "add"},
                                        {SteeringKind::kMultiply, "multiply"}});

struct SteeringChange {
  FeatureId feature = {};
  SteeringKind kind = SteeringKind::kSet;
  double value = 0;
  std::optional<std::int64_t> position = {};  // none: every one but the first

  friend bool operator==(const SteeringChange&, const SteeringChange&) = default;
};

// Several with commas. Throws Error for what it cannot read.
std::vector<SteeringChange> parse_steering(std::string_view text);
// "L5F123 = 8", "L5F123 + 8", "L5F123@-1 x -2"; with commas.
std::string text_of(const SteeringChange& change);
std::string text_of(const std::vector<SteeringChange>& changes);

class SteeredFeatures {
 public:
  // The dictionary must outlive it. Throws Error for features that it does not have.
  SteeredFeatures(const FeatureDictionary& dictionary, std::vector<SteeringChange> changes);
  SteeredFeatures(const SteeredFeatures&) = delete;
  SteeredFeatures& operator=(const SteeredFeatures&) = delete;

  // Puts the changes on the taps of runs of one text, from the embeddings on. This object must
  // outlive the runs.
  void put_on(Taps& taps);

  // For texts that grow, pass by pass: the tokens before those of the next pass, and the length
  // from which negative positions count.
  void set_pass(std::int64_t first, std::int64_t length);

  const std::vector<SteeringChange>& changes() const { return changes_; }
  // What each feature was in the last pass before it was changed, by position.
  const std::vector<std::vector<float>>& activations() const { return activations_; }

 private:
  void read(std::int64_t layer, const Tensor& inputs);
  Variable written(std::int64_t layer, const Variable& output) const;

  const FeatureDictionary& dictionary_;
  std::vector<SteeringChange> changes_;
  std::vector<FeatureRows> rows_;                // of each change
  std::vector<std::vector<float>> activations_;  // of each change, of the pass at hand
  std::int64_t first_ = 0;
  std::optional<std::int64_t> length_ = {};
  std::int64_t total_ = 0;  // tokens up to the end of the pass at hand
};

}  // namespace filigree
