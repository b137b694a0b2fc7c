// What a model is, in terms that hold for every family.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "nn/norm.h"
#include "nn/rotary_table.h"
#include "runtime/activation.h"

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

// Where the norms of a block stand.
enum class BranchNorms {
  kBefore,  // in front of attention and MLP: what they read
  kAfter,   // behind them: what they add to the stream
  kBoth,
};

// What queries and keys are normalised over, before they are turned.
enum class QueryKeyNorm { kNone, kHead, kAllHeads };

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
  bool norm_around_one = false;  // weights of norms are stored less 1
  BranchNorms branch_norms = BranchNorms::kBefore;
  QueryKeyNorm query_key_norm = QueryKeyNorm::kNone;
  double embedding_scale = 1.0;  // what the tokens' vectors are multiplied with
  PositionKind positions = PositionKind::kLearned;
  // Of kRotary: elements of a head that are turned, from the first, and one more if it is odd.
  std::int64_t rotary_width = 0;
  double rotary_base = 10000.0;
  RotaryScaling rotary_scaling = {};
  double attention_scale = 0.0;            // of the scores; 0: 1 / sqrt(head_width)
  bool scale_by_layer = false;             // divided further by the layer's number, counted from 1
  std::vector<std::int64_t> windows = {};  // keys that a query of each layer sees; 0 and empty: all
  float score_soft_cap = 0.0f;             // of the scores; 0: none
  float logit_soft_cap = 0.0f;             // of the logits; 0: none
  float clip_qkv = 0.0f;                   // bound of the elements of q, k and v; 0: none
  MlpKind mlp = MlpKind::kPlain;
  Activation activation = Activation::kGeluNew;  // of the MLPs
  ResidualKind residual = ResidualKind::kSequential;
  GateConfig gate = {};
  nlohmann::json source;  // config.json as it was read, and as it will be written

  // 0: all keys.
  std::int64_t window(std::int64_t layer) const {
    return windows.empty() ? 0 : windows[static_cast<std::size_t>(layer)];
  }
  // Edges of one head of a layer among so many tokens, within the causal mask and the window.
  double causal_edges(std::int64_t layer, std::int64_t tokens) const {
    const auto T = static_cast<double>(tokens), W = static_cast<double>(window(layer));
    if (W == 0.0 || W >= T) return 0.5 * T * (T + 1.0);
    return 0.5 * W * (W + 1.0) + (T - W) * W;
  }
};

}  // namespace filigree
