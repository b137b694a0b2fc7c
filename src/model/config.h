// What a model is, in terms that hold for every family.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "filigree/nn/norm.h"
#include "filigree/runtime/activation.h"

namespace filigree {

// The gate of sparse attention (ops/attention/gated_attention.h): the "gate" section of
// config.json,
//   "gate": {"bias": 2.0}              one bias for all heads
//   "gate": {"bias": [[...], ...]}     one a layer and head
// Other programs ignore the section and see an ordinary model.
struct GateConfig {
  std::vector<float> bias;  // one number, or layers * heads; empty: no gate

  bool on() const { return !bias.empty(); }
};

// How a model knows where a token stands.
enum class PositionKind {
  kLearned,  // a vector a position, added to the token's
  kRotary,   // queries and keys turned by the position (ops/rotary)
};

enum class MlpKind { kPlain, kGated };  // nn/mlp.h

// What the MLP of a block reads.
enum class ResidualKind {
  kSequential,  // the stream after the attention
  kParallel,    // the stream that the attention reads too
};

struct ModelConfig {
  std::string family;  // Hugging Face's model_type: "gpt2"
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t key_heads = 0;  // key-value heads; equal to `heads` without grouping
  std::int64_t width = 0;      // of the residual stream
  std::int64_t head_width = 0;
  std::int64_t mlp_width = 0;
  std::int64_t context = 0;  // longest input
  std::int64_t vocabulary = 0;
  bool tied_embeddings = true;  // the output matrix is the token embedding
  NormKind norm = NormKind::kLayer;
  double norm_epsilon = 1e-5;
  PositionKind positions = PositionKind::kLearned;
  std::int64_t rotary_width = 0;  // of kRotary: elements of a head that are turned, from the first
  double rotary_base = 10000.0;
  double attention_scale = 0.0;  // of the scores; 0: 1 / sqrt(head_width)
  bool scale_by_layer = false;   // divided further by the layer's number, counted from 1
  MlpKind mlp = MlpKind::kPlain;
  Activation activation = Activation::kGeluNew;  // of the MLPs
  ResidualKind residual = ResidualKind::kSequential;
  GateConfig gate = {};
  nlohmann::json source;  // config.json as it was read, and as it will be written
};

}  // namespace filigree
