// What one feature is: when it is active, what it writes, whom it reads and who reads it, and a few
// words for it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "features/dictionary.h"
#include "features/index/feature_index.h"
#include "study/json.h"
#include "study/tokens.h"

namespace filigree::study {

struct FeatureRequest {
  std::string feature = {};          // "L5F123"
  std::string features = {};         // folder of the transcoder
  std::filesystem::path index = {};  // "": what weights tell, and no more
  std::size_t top = 10;              // of each list
  std::size_t examples = 6;          // of each range of activations
};

// What a unit of the feature adds to a token's logit on the direct way: everything that it writes,
// summed over the layers it writes to, through the final norm's gain (its scale held at 1) and the
// unembedding, less the mean over all tokens.
struct FeatureLogit {
  TokenId token = 0;
  double effect = 0;
};

// By weights: what the earlier one writes before the later one reads, times the latter's encoder
// row through its norm's gain; the norm's scale held at 1.
struct FeaturePartner {
  FeatureId feature = {};
  double weight = 0;
};

struct FeatureWrite {
  std::int64_t layer = 0;
  double norm = 0;  // of the decoder row
};

// A token at which the feature is largest, over the examples of the largest activations.
struct FeatureToken {
  TokenId token = 0;
  double share = 0;  // of the examples
};

// Of a token as it is shown: line breaks and tabs themselves, not as \x0a and \x09.
std::string with_line_breaks(std::string shown);
// The same as one line: ↵ and ⇥.
std::string in_one_line(const std::string& shown);

struct FeaturePage {
  FeatureRequest request = {};
  std::string model = {}, label = {};
  FeatureId feature = {};
  TranscoderShape shape = {};
  FeatureActivation activation = FeatureActivation::kRelu;
  double encoder_norm = 0, encoder_bias = 0, threshold = 0;
  std::vector<FeatureWrite> writes = {};
  std::vector<FeatureLogit> raised = {}, lowered = {};
  std::vector<FeaturePartner> reads = {}, read_by = {};  // earlier and later ones
  std::optional<FeatureIndexFacts> indexed = {};
  FeatureRecord record = {};  // of the index
  double frequency = 0;
  std::vector<FeatureToken> tokens = {};
  ShownTokens shown = {};

  // A token as it is in the text, with its line breaks; bytes that are no text are \xNN.
  std::string text_of(TokenId id) const { return with_line_breaks(shown[id]); }
  // A few words: the tokens at which it is largest, and those that it raises.
  std::string words() const;
};

// Throws Error for a feature that is not there, and for an index of another model or transcoder.
FeaturePage describe_feature(const FeatureRequest& request, const LoadedModel& model,
                             const FeatureDictionary& dictionary);

Json to_json(const FeaturePage& page);

// The index of a folder's features. Throws Error when it is of other sizes or another tokenizer.
FeatureIndex open_feature_index(const std::filesystem::path& file, const LoadedModel& model,
                                const FeatureDictionary& dictionary);

// The tokens whose logits features raise and lower most, from what they write [features, width].
struct FeatureLogits {
  std::vector<FeatureLogit> raised = {}, lowered = {};
};
std::vector<FeatureLogits> feature_logits(const LoadedModel& model, const Tensor& unembedding,
                                          const Tensor& written, std::size_t top);

}  // namespace filigree::study
