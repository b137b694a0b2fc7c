#include <fmt/format.h>

#include <span>

#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/features.h"
#include "filigree/ops.h"
#include "ops/sparse_decode/sparse_decode.h"

namespace filigree {
namespace {

Variable parameter(const Shape& shape, float value, const Placement& placement) {
  return Variable(Tensor::full(shape, value, placement.device));
}

int processes_of(const Communicator* ranks) { return ranks != nullptr ? ranks->size() : 1; }

// The value as it is, a share of its gradient: parameters that all processes use on the same tokens
// get the whole one by the sum over the processes.
Variable share_gradient(const Variable& parameter, int ranks) {
  if (ranks == 1) return parameter;
  const float share = 1.0f / static_cast<float>(ranks);
  return make_result(parameter.value(), {&parameter}, [parameter, share](const Tensor& grad) {
    const NoGrad constant;
    parameter.accumulate_grad(scale(Variable(grad), share).value());
  });
}

void sum_in_place(Tensor& tensor, Communicator& ranks) {
  ranks
      .start_sum(
          {std::span(tensor.mutable_data<float>(), static_cast<std::size_t>(tensor.elements()))},
          tensor.device())
      ->wait();
}

}  // namespace

Variable sum_over_ranks(const Variable& part, Communicator& ranks) {
  Tensor whole = part.value().clone();
  sum_in_place(whole, ranks);
  return make_result(std::move(whole), {&part},
                     [part](const Tensor& grad) { part.accumulate_grad(grad.clone()); });
}

Variable shared_by_ranks(const Variable& value, Communicator& ranks) {
  if (ranks.size() == 1) return value;
  return make_result(value.value(), {&value}, [value, &ranks](const Tensor& grad) {
    Tensor whole = grad.dtype() == DType::kF32 ? grad.clone() : grad.to(DType::kF32);
    sum_in_place(whole, ranks);
    value.accumulate_grad(std::move(whole));
  });
}

std::int64_t TranscoderShape::parameters() const {
  std::int64_t rows = 0;  // of decoders, a feature
  for (std::int64_t l = 0; l < layers; ++l) rows += reach(l);
  return features * (layers * (width + 1) + rows * width) + layers * width +
         (skip ? layers * width * width : 0);
}

void check_shape(const TranscoderShape& shape) {
  require(shape.layers >= 1 && shape.width >= 1 && shape.features >= 1,
          "transcoder: {} layers of width {} with {} features", shape.layers, shape.width,
          shape.features);
  require(!shape.skip || shape.kind == TranscoderKind::kPerLayer,
          "transcoder: only per-layer transcoders have skips; leave the skip out");
}

FeatureRange features_of_rank(std::int64_t features, int rank, int size) {
  return {features * rank / size, features * (rank + 1) / size};
}

Tensor layer_rows(const Tensor& all, std::int64_t layer) {
  return all.rows(layer, layer + 1).reshape({all.size(1), all.size(2)});
}

Transcoder::Transcoder(const TranscoderShape& shape, FeatureActivation activation,
                       FeatureRange features, const Placement& placement)
    : shape_(shape), activation_(activation), features_(features), placement_(placement) {
  check_shape(shape);
  require(features.begin >= 0 && features.count() >= 1 && features.end <= shape.features,
          "transcoder: features {} to {} of {}", features.begin, features.end, shape.features);
  const std::int64_t F = features.count(), d = shape.width;
  for (std::int64_t l = 0; l < shape.layers; ++l) {
    TranscoderLayer layer;
    layer.encoder = parameter({F, d}, 0.0f, placement);
    layer.encoder_bias = parameter({F}, 0.0f, placement);
    if (activation == FeatureActivation::kJumpRelu)
      layer.log_threshold = parameter({F}, 0.0f, placement);
    layer.decoder = parameter({F, shape.reach(l) * d}, 0.0f, placement);
    if (shape.skip) layer.skip = parameter({d, d}, 0.0f, placement);
    layers_.push_back(std::move(layer));
  }
  decoder_bias_ = parameter({shape.layers, 1, d}, 0.0f, placement);
}

std::vector<NamedParameter> Transcoder::feature_parameters() const {
  std::vector<NamedParameter> all;
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const TranscoderLayer& layer = layers_[l];
    all.push_back({fmt::format("W_enc_{}", l), layer.encoder});
    all.push_back({fmt::format("b_enc_{}", l), layer.encoder_bias});
    if (layer.log_threshold.defined())
      all.push_back({fmt::format("log_threshold_{}", l), layer.log_threshold});
    all.push_back({fmt::format("W_dec_{}", l), layer.decoder});
  }
  return all;
}

std::vector<NamedParameter> Transcoder::shared_parameters() const {
  std::vector<NamedParameter> all = {{"b_dec", decoder_bias_}};
  for (std::size_t l = 0; l < layers_.size(); ++l)
    if (layers_[l].skip.defined()) all.push_back({fmt::format("W_skip_{}", l), layers_[l].skip});
  return all;
}

Variable Transcoder::threshold(std::int64_t layer) const {
  const Variable& logarithm = layers_[static_cast<std::size_t>(layer)].log_threshold;
  return logarithm.defined() ? exp(logarithm) : Variable();
}

EncoderWeights Transcoder::encoder_weights(std::int64_t layer) const {
  const TranscoderLayer& weights = layers_[static_cast<std::size_t>(layer)];
  return {weights.encoder, weights.encoder_bias, threshold(layer)};
}

SparseEncodeOptions Transcoder::encode_options(const ActivityOptions& options,
                                               Communicator* ranks) const {
  SparseEncodeOptions encode;
  encode.precision = placement_.precision;
  encode.k = options.k;
  if (activation_ == FeatureActivation::kJumpRelu) encode.bandwidth = options.bandwidth;
  if (activation_ == FeatureActivation::kTopK) encode.selection = Selection::kTopK;
  if (activation_ == FeatureActivation::kBatchTopK) encode.selection = Selection::kBatchTopK;
  if (ranks != nullptr && ranks->size() > 1) {
    encode.sum = [ranks](std::span<double> values) { ranks->sum(values); };
    encode.process = ranks->rank();
    encode.processes = ranks->size();
  }
  return encode;
}

Encoded Transcoder::encode_layer(std::int64_t layer, const Variable& inputs,
                                 const ActivityOptions& options, Communicator* ranks) const {
  return sparse_encode(inputs, encoder_weights(layer), encode_options(options, ranks),
                       options.below);
}

Activity Transcoder::encode(const Tensor& inputs, const ActivityOptions& options,
                            Communicator* ranks) const {
  require(inputs.shape().rank() == 3 && inputs.size(0) == shape_.layers &&
              inputs.size(2) == shape_.width,
          "transcoder: inputs {} are not [{}, tokens, {}]", inputs.shape().to_string(),
          shape_.layers, shape_.width);
  std::vector<EncoderWeights> weights;
  for (std::int64_t l = 0; l < shape_.layers; ++l) weights.push_back(encoder_weights(l));
  Activity activity;
  for (Encoded& encoded :
       sparse_encode_layers(inputs, weights, encode_options(options, ranks), options.below)) {
    activity.codes.push_back(std::move(encoded.code));
    activity.bounds.push_back(encoded.bound);
    if (options.below) activity.below.push_back(std::move(encoded.below));
  }
  return activity;
}

Variable Transcoder::features_written(const std::vector<SparseCode>& codes,
                                      Communicator* ranks) const {
  std::vector<DecoderSource> sources;
  for (std::int64_t l = 0; l < shape_.layers; ++l)
    sources.push_back({codes[static_cast<std::size_t>(l)],
                       layers_[static_cast<std::size_t>(l)].decoder, l, shape_.reach(l)});
  const Variable written =
      sparse_decode(sources, shape_.layers, shape_.width, placement_.precision);
  return processes_of(ranks) > 1 ? sum_over_ranks(written, *ranks) : written;
}

Variable Transcoder::add_skips(const Variable& written, const Tensor& inputs,
                               Communicator* ranks) const {
  if (!shape_.skip) return written;
  std::vector<Variable> passed;
  for (std::int64_t l = 0; l < shape_.layers; ++l) {
    const Variable weight =
        share_gradient(layers_[static_cast<std::size_t>(l)].skip, processes_of(ranks));
    const Tensor x = layer_rows(inputs, l);
    passed.push_back(linear(x.to(DType::kF32), {.weight = weight, .bias = {}, .out_in = true}));
  }
  Variable skips = concat(passed, 0);
  return add(written, reshape(skips, written.shape()));
}

Variable Transcoder::shared_decoder_bias(Communicator* ranks) const {
  return share_gradient(decoder_bias_, processes_of(ranks));
}

Variable Transcoder::decode_unbiased(const std::vector<SparseCode>& codes, const Tensor& inputs,
                                     Communicator* ranks) const {
  return add_skips(features_written(codes, ranks), inputs, ranks);
}

Variable Transcoder::decode(const std::vector<SparseCode>& codes, const Tensor& inputs,
                            Communicator* ranks) const {
  return add_skips(add(features_written(codes, ranks), shared_decoder_bias(ranks)), inputs, ranks);
}

Variable Transcoder::decode_layer(std::int64_t layer, const SparseCode& code,
                                  Communicator* ranks) const {
  const std::int64_t reach = shape_.reach(layer);
  const DecoderSource source{code, layers_[static_cast<std::size_t>(layer)].decoder, 0, reach};
  const Variable written =
      sparse_decode(std::span(&source, 1), reach, shape_.width, placement_.precision);
  return processes_of(ranks) > 1 ? sum_over_ranks(written, *ranks) : written;
}

Variable Transcoder::written_always(std::int64_t layer, const Variable& inputs,
                                    Communicator* ranks) const {
  const Variable bias =
      reshape(slice(shared_decoder_bias(ranks), 0, layer, layer + 1), {1, shape_.width});
  if (!shape_.skip) return bias;
  const Variable weight =
      share_gradient(layers_[static_cast<std::size_t>(layer)].skip, processes_of(ranks));
  const Variable x = placed(inputs, inputs.value().device());
  return add(linear(x, {.weight = weight, .bias = {}, .out_in = true}), bias);
}

}  // namespace filigree
