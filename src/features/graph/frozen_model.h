// A model on one prompt with everything frozen that is not linear: attention weights after the
// gates and the denominators of norms. What is left carries a change of the residual stream upwards
// by matrix products alone: centring and gain of the norms are folded into the matrices that read
// behind them or write before them, their denominators into the patterns. MLPs are no part of it:
// what features write is added to the stream behind any norm that follows the MLP.
//
// Soft caps: those of scores are frozen with the attention weights, logits are those before theirs.
// Clipped values are linear as long as none is clipped, and a prompt on which one is, is refused.
//
// The stream is read at stages: stage 2 l is what layer l's attention reads, 2 l + 1 what its MLP
// reads, and the last, 2 L, what the final norm reads.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/model.h"

namespace filigree {

// Vectors that are written into the stream at one stage, ordered by position. Source `bias` (the
// number of sources) stands for all that is there whatever the prompt.
struct StreamWrites {
  Tensor rows;                       // [writes, width]
  std::vector<std::int32_t> source;  // of each
  std::vector<std::int64_t> begin;   // [positions + 1]
};

// A linear function of the stream at one stage, of one position or several: constant + sum over
// parts of vector . stream[position].
struct StreamReading {
  struct Part {
    std::int64_t position = 0;
    std::vector<float> vector;  // [width]
  };
  std::int64_t stage = 0;
  std::vector<Part> parts;
  double constant = 0.0;
};

struct FrozenLayer {
  Tensor value;   // [key heads, D, width]: of the stream divided by its norm's denominator
  Tensor output;  // [heads, D, width], with the gain of the norm behind the attention
  // [heads, positions, positions]: weight / denominators of the key's norm and of the one behind
  Tensor pattern;
  Tensor skip;  // [width, width] or undefined, of the stream times skip_scale: y[o] = skip[o] . x
  std::vector<float> skip_scale;  // [positions]
  Tensor attention_bias;          // [positions, width]: b_O and what b_V becomes
  Tensor weights;                 // [heads, positions, positions], as the run had
  Tensor query, key;              // [positions, heads or key heads, D], turned
  // As projected and clipped, where a model clips; and 1 / denominator of the norm of each head's
  // query or key, [positions, heads or key heads], where there is one.
  Tensor projected_query, projected_key, query_scale, key_scale;
  std::vector<float> attention_scale, mlp_scale;  // 1 / denominator, [positions]
  Tensor mlp_input, mlp_output;                   // [positions, width], of features' hooks
};

struct FrozenModel {
  std::int64_t positions = 0, width = 0, heads = 0, key_heads = 0, head_width = 0;
  bool parallel = false;                 // MLPs read what the attention reads
  DeviceKind device = DeviceKind::kCpu;  // of sweeps; what is kept here lies on the CPU
  std::vector<std::int32_t> ids;
  std::vector<FrozenLayer> layers;
  std::vector<float> final_scale;  // 1 / denominator, [positions]
  Tensor token_embedding;          // [positions, width]
  Tensor position_embedding;       // [positions, width] or undefined
  Tensor logits;                   // [vocabulary], of the last position, before a soft cap
  float logit_soft_cap = 0.0f, score_soft_cap = 0.0f;  // 0: none
  ModelWeights weights;                                // of the model, which must live as long

  std::int64_t depth() const { return static_cast<std::int64_t>(layers.size()); }
  const FrozenLayer& layer(std::int64_t l) const { return layers[static_cast<std::size_t>(l)]; }

  // Readings behind norms. Vectors have the stream's width.
  StreamReading read_attention(std::int64_t layer, std::int64_t position,
                               std::span<const double> vector) const;
  StreamReading read_mlp(std::int64_t layer, std::int64_t position,
                         std::span<const double> vector) const;
  StreamReading read_final(std::int64_t position, std::span<const double> vector) const;

  // The same weights with one position only, which attends to nothing but itself.
  FrozenModel alone(std::int64_t position) const;
};

// Runs the model on ids and keeps what is frozen. `mlp_input` and `mlp_output` are taps behind
// "blocks.L.". Throws Error for a model with adapters, for an empty prompt, and where a value of an
// attention layer is clipped.
FrozenModel freeze_model(const Model& model, std::span<const std::int32_t> ids,
                         const std::string& mlp_input, const std::string& mlp_output);

// The same as f32 on the CPU.
LinearWeight on_host(const LinearWeight& w);
// Row `output` of a linear layer as numbers.
std::vector<double> output_row(const LinearWeight& w, std::int64_t output);
double output_bias(const LinearWeight& w, std::int64_t output);

}  // namespace filigree
