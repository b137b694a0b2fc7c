// A transcoder with random weights, a share of whose features is active; in memory, or as a folder.
#pragma once

#include <filesystem>

#include "filigree/features.h"
#include "filigree/model.h"
#include "support/check_op.h"

namespace filigree {

inline Transcoder random_transcoder(const TranscoderShape& shape, FeatureActivation activation,
                                    float largest = 1.0f) {
  Transcoder transcoder(shape, activation, {0, shape.features});
  std::uint64_t seed = 40;
  const auto fill = [&](const NamedParameter& parameter) {
    Tensor& value = parameter.variable.mutable_value();
    value = random_tensor(value.shape(), ++seed, -largest, largest);
  };
  for (const NamedParameter& parameter : transcoder.feature_parameters()) fill(parameter);
  for (const NamedParameter& parameter : transcoder.shared_parameters()) fill(parameter);
  return transcoder;
}

// For a model's shape.
inline Transcoder random_transcoder(const ModelConfig& config, TranscoderKind kind,
                                    std::int64_t features, bool skip = false,
                                    float largest = 0.5f) {
  return random_transcoder({kind, config.layers, config.width, features, skip},
                           FeatureActivation::kRelu, largest);
}

inline Transcoder write_random_transcoder(const std::filesystem::path& folder,
                                          const TranscoderShape& shape) {
  Transcoder transcoder = random_transcoder(shape, FeatureActivation::kJumpRelu);
  write_transcoder(folder, transcoder, {.model_name = "random"});
  return transcoder;
}

}  // namespace filigree
