// The features of a transcoder as studies use them, wherever they are kept: in memory, or in files
// of which only the rows that are needed are read.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "features/transcoder.h"

namespace filigree {

// What features read and write in every layer: taps behind "blocks.L.".
struct FeatureHooks {
  std::string input = "ln2.hook_normalized";
  std::string output = "hook_mlp_out";

  std::string input_of(std::int64_t layer) const;
  std::string output_of(std::int64_t layer) const;
};

// Of some features of a layer, in the order they were asked for; f32 on the CPU.
struct FeatureRows {
  Tensor encoder;       // [features, width]
  Tensor encoder_bias;  // [features]
  Tensor threshold;     // [features]; zeros where they have none
  Tensor decoder;       // [features, reach, width]
};

class FeatureDictionary {
 public:
  virtual ~FeatureDictionary() = default;

  virtual const TranscoderShape& shape() const = 0;
  virtual FeatureActivation activation() const = 0;
  virtual const FeatureHooks& hooks() const = 0;

  // The features that are active, of inputs f32 [tokens, width] on the CPU.
  virtual SparseCode encode(std::int64_t layer, const Tensor& inputs) const = 0;
  // Throws Error for a feature that is not there.
  virtual FeatureRows rows(std::int64_t layer, std::span<const std::int32_t> features) const = 0;
  virtual Tensor decoder_bias(std::int64_t layer) const = 0;  // [width]
  virtual Tensor skip(std::int64_t layer) const = 0;          // [width, width] or undefined

  // Of every feature, its encoder row times x [width], and the sum of its first `targets` decoder
  // rows times x: [features].
  virtual Tensor encoder_products(std::int64_t layer, const Tensor& x) const;
  virtual Tensor decoder_products(std::int64_t layer, const Tensor& x, std::int64_t targets) const;

  // What a layer's active features write to each of its targets: [reach, tokens, width], without
  // biases and skips. Reads the rows of the active features, unless there is a shorter way.
  virtual Tensor written(std::int64_t layer, const SparseCode& code) const;
};

// Of a transcoder with all of its features on the CPU. `k` is of top-k.
std::unique_ptr<FeatureDictionary> dictionary_of(Transcoder transcoder, FeatureHooks hooks = {},
                                                 std::int64_t k = 0);

// The features of a code that are active in any of its rows, ascending.
std::vector<std::int32_t> active_features(const SparseCode& code);

}  // namespace filigree
