// What a model is, in terms that hold for every family.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

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
  double norm_epsilon = 1e-5;
  GateConfig gate = {};
  nlohmann::json source;  // config.json as it was read, and as it will be written
};

}  // namespace filigree
