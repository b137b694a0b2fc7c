// A transcoder with random weights, a share of whose features is active, for a model's shape.
#pragma once

#include "filigree/features/dictionary.h"
#include "filigree/model/config.h"
#include "support/check_op.h"

namespace filigree {

inline Transcoder random_transcoder(const ModelConfig& config, TranscoderKind kind,
                                    std::int64_t features, bool skip = false,
                                    float largest = 0.5f) {
  const TranscoderShape shape{kind, config.layers, config.width, features, skip};
  Transcoder transcoder(shape, FeatureActivation::kRelu, {0, features});
  std::uint64_t seed = 40;
  const auto fill = [&](const NamedParameter& parameter) {
    Tensor& value = parameter.variable.mutable_value();
    value = random_tensor(value.shape(), ++seed, -largest, largest);
  };
  for (const NamedParameter& parameter : transcoder.feature_parameters()) fill(parameter);
  for (const NamedParameter& parameter : transcoder.shared_parameters()) fill(parameter);
  return transcoder;
}

}  // namespace filigree
