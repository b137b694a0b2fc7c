// The forward pass that the families share: embeddings, blocks of attention and MLP on a residual
// stream, final norm. Runs may start in the middle, keep one position, compute layers again in the
// backward pass, and have gates, taps, adapters and a cache.
//
// A family reads its configuration and says which of its parameters is what; the kinds of norm,
// positions, MLP and residual stream are the configuration's (model/config.h).
#pragma once

#include <memory>
#include <vector>

#include "filigree/model/model.h"

namespace filigree {

// What the configuration says of every layer alike (head counts, kinds, epsilon) is filled in by
// make_decoder; a family gives the weights, and what differs between layers.
struct DecoderBlock {
  NormWeights attention_norm, mlp_norm;
  AttentionWeights attention;
  MlpWeights mlp;
};

struct DecoderWeights {
  Variable token_embedding;     // [V, width]
  Variable position_embedding;  // [context, width], where positions are learned
  std::vector<DecoderBlock> blocks;
  NormWeights final_norm;
  LinearWeight output;  // width -> V
};

std::unique_ptr<Model> make_decoder(const ModelConfig& config,
                                    std::vector<NamedParameter> parameters, DecoderWeights weights);

// Hands out parameters in the order in which the family lists them.
class ParametersInOrder {
 public:
  explicit ParametersInOrder(const std::vector<NamedParameter>& parameters)
      : parameters_(parameters) {}

  Variable next() { return parameters_.at(next_++).variable; }
  // A weight and, unless there is none, a bias.
  NormWeights norm(bool bias = true) {
    const Variable weight = next();
    return {weight, bias ? next() : Variable()};
  }
  LinearWeight linear(bool bias = true) {
    const Variable weight = next();
    return {weight, bias ? next() : Variable()};
  }
  // The same of a matrix that is stored [out, in].
  LinearWeight linear_out_in(bool bias) {
    LinearWeight layer = linear(bias);
    layer.out_in = true;
    return layer;
  }

 private:
  const std::vector<NamedParameter>& parameters_;
  std::size_t next_ = 0;
};

}  // namespace filigree
