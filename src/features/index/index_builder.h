// An index of features in the making: one pass over a text, in memory that the text's length does
// not change.
//
// Of each feature are kept a histogram, the windows in which it is most active, and windows chosen
// by chance among all in which it is active (a reservoir), at a token chosen by chance among those
// at which it is. What is kept of a window is where it is and the activations around the token; the
// tokens themselves are read again in the end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "features/index/feature_index.h"
#include "ops/sparse_code/sparse_code.h"

namespace filigree {

struct IndexOptions {
  std::int64_t top = 10;                // examples of the largest activations
  std::int64_t sampled = 30;            // and of all others
  std::int64_t before = 23, after = 8;  // tokens around one
  std::uint64_t seed = 0;
};

class IndexBuilder {
 public:
  IndexBuilder(std::int64_t layers, std::int64_t features, const IndexOptions& options);

  // What a layer's features are at windows of `length` tokens, one after the other, the first of
  // which is token `begin` of the text. The first token of a window does not count.
  void add(std::int64_t layer, const SparseCode& code, std::uint64_t begin, std::int64_t length);

  // What is kept of a feature; `read` gives tokens of the text from a position on.
  using ReadTokens = std::function<void(std::uint64_t begin, std::span<TokenId> ids)>;
  FeatureRecord record(const FeatureId& feature, const ReadTokens& read) const;

  // Features that were active.
  std::int64_t active() const;
  // Memory that features take which are active often enough to have all of their examples.
  static std::uint64_t bytes_of_feature(const IndexOptions& options);

 private:
  struct Slot {
    std::uint64_t first = 0;  // token of the text
    std::uint16_t centre = 0;
    float value = 0;
    std::vector<std::uint16_t> activations = {};  // f16
  };
  struct State {
    std::uint64_t count = 0, windows = 0;
    float min = 0, max = 0;
    ActivationHistogram histogram = {};
    std::vector<Slot> top = {}, sampled = {};
  };
  struct Entries {  // of a feature in a window
    const std::int32_t* row = nullptr;
    const std::int32_t* entry = nullptr;
    std::int64_t count = 0;
    const float* value = nullptr;
    std::int64_t length = 0;   // tokens of a window
    std::uint64_t window = 0;  // first token of it
  };

  void add_window(State& state, std::uint64_t stream, const Entries& entries) const;
  Slot slot_of(const Entries& entries, std::int64_t which) const;

  std::int64_t features_;
  IndexOptions options_;
  std::vector<std::unique_ptr<State>> states_;  // null: never active
};

}  // namespace filigree
