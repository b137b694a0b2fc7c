// Features that stay in their files: encoders are passed through block by block, and of decoders
// only the rows are read that somebody asks for. So a transcoder may be larger than memory.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "features/files/stored_matrix.h"
#include "filigree/features.h"

namespace filigree {

struct StoredLayer {
  StoredMatrix encoder;  // [features, width]
  Tensor encoder_bias;   // [features]
  Tensor threshold;      // [features], undefined without
  // [features, reach * width], or a matrix [features, width] for each target.
  std::vector<StoredMatrix> decoder;
  Tensor decoder_bias;  // [width]
  std::optional<StoredTensor> skip = {};
};

struct StoredTranscoder {
  TranscoderShape shape;
  FeatureHooks hooks;
  std::int64_t k = 0;  // of top-k; 0: thresholds decide
  std::vector<StoredLayer> layers;
  std::string model_name = {}, scan = {};  // of config.yaml, where there is one

  FeatureActivation activation() const;
};

// Numbers of an encoder that are read at once, and of what they give before selection.
inline constexpr std::int64_t kEncoderBlock = std::int64_t{1} << 22;

// `block` is smaller only in tests.
std::unique_ptr<FeatureDictionary> dictionary_of(StoredTranscoder stored,
                                                 std::int64_t block = kEncoderBlock);

}  // namespace filigree
