// A transcoder: features that read what a layer's MLP reads and write what MLPs write, those of the
// same layer (per-layer) or of that layer and all later ones (cross-layer).
//
//   h_l = W_enc[l] x_l + b_enc[l]        a_l = h_l where it passes (ops/sparse_encode), else 0
//   y_m = b_dec[m] + sum over sources l of W_dec[l -> m]^T a_l  [+ W_skip[m] x_m]
//
// Inputs and outputs are [layers, tokens, width]. A process may hold some of the features of every
// layer; what they write is then summed over the processes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "autograd/named_parameter.h"
#include "base/names.h"
#include "dist/communicator.h"
#include "model/placement.h"
#include "ops/sparse_encode/sparse_encode.h"

namespace filigree {

enum class TranscoderKind { kCrossLayer, kPerLayer };
template <>
inline constexpr auto kNames<TranscoderKind> = std::to_array<Named<TranscoderKind>>(
    {{TranscoderKind::kCrossLayer, "cross-layer"}, {TranscoderKind::kPerLayer, "per-layer"}});

enum class FeatureActivation { kRelu, kJumpRelu, kTopK, kBatchTopK };
template <>
inline constexpr auto kNames<FeatureActivation> =
    std::to_array<Named<FeatureActivation>>({{FeatureActivation::kRelu, "relu"},
                                             {FeatureActivation::kJumpRelu, "jump-relu"},
                                             {FeatureActivation::kTopK, "top-k"},
                                             {FeatureActivation::kBatchTopK, "batch-top-k"}});

struct TranscoderShape {
  TranscoderKind kind = TranscoderKind::kCrossLayer;
  std::int64_t layers = 0, width = 0;
  std::int64_t features = 0;  // of each layer
  bool skip = false;          // W_skip, of per-layer ones as the file formats have it

  // Targets that the features of a layer write to, from that layer on.
  std::int64_t reach(std::int64_t layer) const {
    return kind == TranscoderKind::kCrossLayer ? layers - layer : 1;
  }
  std::int64_t parameters() const;  // numbers, all features
};

// Throws Error for sizes that make no sense.
void check_shape(const TranscoderShape& shape);

// A range of the features of every layer.
struct FeatureRange {
  std::int64_t begin = 0, end = 0;
  std::int64_t count() const { return end - begin; }
};
// The part of one of several processes.
FeatureRange features_of_rank(std::int64_t features, int rank, int size);

struct TranscoderLayer {
  Variable encoder;        // [features, width]
  Variable encoder_bias;   // [features]
  Variable log_threshold;  // [features] of JumpReLU, else undefined
  Variable decoder;        // [features, reach * width]
  Variable skip;           // [width, width] or undefined: y += W_skip x
};

struct Activity {
  std::vector<SparseCode> codes;  // of each layer
  std::vector<Variable> below;    // of each layer, if asked for
  std::vector<float> bounds;      // of batch-top-k; not in training on a GPU
};

struct ActivityOptions {
  std::int64_t k = 0;      // of top-k and batch-top-k
  float bandwidth = 0.0f;  // of JumpReLU's gradient
  bool below = false;
};

class Transcoder {
 public:
  // All parameters zero, thresholds 1.
  Transcoder(const TranscoderShape& shape, FeatureActivation activation, FeatureRange features,
             const Placement& placement = {});

  const TranscoderShape& shape() const { return shape_; }
  FeatureActivation activation() const { return activation_; }
  const FeatureRange& features() const { return features_; }
  bool whole() const { return features_.count() == shape_.features; }
  const Placement& placement() const { return placement_; }

  std::vector<TranscoderLayer>& layers() { return layers_; }
  const std::vector<TranscoderLayer>& layers() const { return layers_; }
  const Variable& decoder_bias() const { return decoder_bias_; }  // [layers, 1, width]

  // Names as circuit-tracer's files have them, with "log_threshold_0" and "W_skip_0".
  std::vector<NamedParameter> feature_parameters() const;
  std::vector<NamedParameter> shared_parameters() const;

  // Which features are active. `inputs` is [layers, tokens, width] in the placement's precision.
  Activity encode(const Tensor& inputs, const ActivityOptions& options,
                  Communicator* ranks = nullptr) const;
  // Those of one layer alone, of inputs [tokens, width], to which gradients flow back.
  Encoded encode_layer(std::int64_t layer, const Variable& inputs, const ActivityOptions& options,
                       Communicator* ranks = nullptr) const;
  // What they write: f32 [layers, tokens, width]. `inputs` are read by skips only.
  Variable decode(const std::vector<SparseCode>& codes, const Tensor& inputs,
                  Communicator* ranks = nullptr) const;
  // The same without the decoder bias, for whoever adds it in a pass of its own; its gradient is
  // then to be that of shared_decoder_bias().
  Variable decode_unbiased(const std::vector<SparseCode>& codes, const Tensor& inputs,
                           Communicator* ranks = nullptr) const;
  Variable shared_decoder_bias(Communicator* ranks = nullptr) const;
  // What those of one layer write to it and the layers that it reaches: f32 [reach, tokens, width],
  // without biases and skips.
  Variable decode_layer(std::int64_t layer, const SparseCode& code,
                        Communicator* ranks = nullptr) const;
  // What is written to a layer whatever is active, f32: its decoder bias [1, width], or with a skip
  // what that makes of the inputs too, [tokens, width].
  Variable written_always(std::int64_t layer, const Variable& inputs,
                          Communicator* ranks = nullptr) const;

  // The threshold itself, or undefined.
  Variable threshold(std::int64_t layer) const;

 private:
  EncoderWeights encoder_weights(std::int64_t layer) const;
  SparseEncodeOptions encode_options(const ActivityOptions& options, Communicator* ranks) const;
  Variable features_written(const std::vector<SparseCode>& codes, Communicator* ranks) const;
  Variable add_skips(const Variable& written, const Tensor& inputs, Communicator* ranks) const;

  TranscoderShape shape_;
  FeatureActivation activation_;
  FeatureRange features_;
  Placement placement_;
  std::vector<TranscoderLayer> layers_;
  Variable decoder_bias_;
};

// The sum over the processes of what each of them has written. The gradient of the sum is that of
// every part.
Variable sum_over_ranks(const Variable& part, Communicator& ranks);
// The other way round: a value that is the same on every process and of which each uses a part, so
// that its gradient is the sum of theirs.
Variable shared_by_ranks(const Variable& value, Communicator& ranks);

// Row r of target m of [layers, tokens, width], same memory.
Tensor layer_rows(const Tensor& all, std::int64_t layer);

}  // namespace filigree
