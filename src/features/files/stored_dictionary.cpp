#include "features/files/stored_dictionary.h"

#include <algorithm>
#include <functional>

#include "filigree/autograd.h"
#include "filigree/error.h"

namespace filigree {
namespace {

constexpr std::int64_t kFewestRows = 8;  // of a block

// The entries of each row over all blocks, in their order.
SparseCode joined(const std::vector<SparseCode>& blocks, const std::vector<std::int64_t>& first,
                  std::int64_t rows, std::int64_t features) {
  std::vector<std::int32_t> begin = {0}, feature;
  std::vector<float> value;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      const SparseCode& code = blocks[b];
      for (std::int32_t p = code.begin.i32()[r]; p < code.begin.i32()[r + 1]; ++p) {
        feature.push_back(static_cast<std::int32_t>(first[b]) + code.feature.i32()[p]);
        value.push_back(code.value.value().f32()[p]);
      }
    }
    begin.push_back(static_cast<std::int32_t>(feature.size()));
  }
  const auto entries = static_cast<std::int64_t>(value.size());
  return make_code(features, begin, feature, Variable(Tensor::from({entries}, value)));
}

// The k largest of each row, of those that are the k largest of a block; equal ones pass together.
SparseCode largest(const SparseCode& code, std::int64_t k) {
  std::vector<std::int32_t> begin = {0}, feature;
  std::vector<float> value;
  std::vector<float> sorted;
  for (std::int64_t r = 0; r < code.rows; ++r) {
    const std::int32_t from = code.begin.i32()[r], to = code.begin.i32()[r + 1];
    const float* values = code.value.value().f32();
    float bound = 0.0f;
    if (to - from > k) {
      sorted.assign(values + from, values + to);
      std::nth_element(sorted.begin(), sorted.begin() + (k - 1), sorted.end(), std::greater<>());
      bound = sorted[static_cast<std::size_t>(k - 1)];
    }
    for (std::int32_t p = from; p < to; ++p) {
      if (values[p] < bound) continue;
      feature.push_back(code.feature.i32()[p]);
      value.push_back(values[p]);
    }
    begin.push_back(static_cast<std::int32_t>(feature.size()));
  }
  const auto entries = static_cast<std::int64_t>(value.size());
  return make_code(code.features, begin, feature, Variable(Tensor::from({entries}, value)));
}

class TranscoderInFiles final : public FeatureDictionary {
 public:
  TranscoderInFiles(StoredTranscoder stored, std::int64_t block)
      : stored_(std::move(stored)), activation_(stored_.activation()), block_(block) {}

  const TranscoderShape& shape() const override { return stored_.shape; }
  FeatureActivation activation() const override { return activation_; }
  const FeatureHooks& hooks() const override { return stored_.hooks; }

  SparseCode encode(std::int64_t layer, const Tensor& inputs) const override {
    require(inputs.shape().rank() == 2 && inputs.size(1) == shape().width,
            "transcoder: inputs {} are not [tokens, {}]", inputs.shape().to_string(),
            shape().width);
    const NoGrad constant;
    const StoredLayer& weights = of(layer);
    const std::int64_t features = shape().features, tokens = inputs.size(0);
    const std::int64_t rows = std::max(kFewestRows, block_ / std::max(shape().width, tokens / 4));
    SparseEncodeOptions options;
    options.k = stored_.k;
    if (stored_.k > 0) options.selection = Selection::kTopK;
    std::vector<SparseCode> blocks;
    std::vector<std::int64_t> first;
    for (std::int64_t begin = 0; begin < features; begin += rows) {
      const std::int64_t count = std::min(rows, features - begin);
      EncoderWeights encoder{Variable(weights.encoder.block(begin, count)),
                             Variable(weights.encoder_bias.rows(begin, begin + count)), Variable()};
      if (weights.threshold.defined())
        encoder.threshold = Variable(weights.threshold.rows(begin, begin + count));
      blocks.push_back(sparse_encode(Variable(inputs), encoder, options).code);
      first.push_back(begin);
      if (count < features) weights.encoder.release(begin, count);
    }
    if (blocks.size() == 1) return blocks[0];
    const SparseCode code = joined(blocks, first, tokens, features);
    return stored_.k > 0 ? largest(code, stored_.k) : code;
  }

  FeatureRows rows(std::int64_t layer, std::span<const std::int32_t> features) const override {
    const StoredLayer& weights = of(layer);
    const auto count = static_cast<std::int64_t>(features.size());
    const std::int64_t width = shape().width, reach = shape().reach(layer);
    FeatureRows rows{Tensor::empty({count, width}), Tensor::empty({count}), Tensor::zeros({count}),
                     Tensor::empty({count, reach, width})};
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int32_t f = features[static_cast<std::size_t>(i)];
      require(f >= 0 && f < shape().features,
              "transcoder: layer {} has no feature {}, only 0 to {}", layer, f,
              shape().features - 1);
      weights.encoder.read_row(f, rows.encoder.mutable_f32() + i * width);
      rows.encoder_bias.mutable_f32()[i] = weights.encoder_bias.f32()[f];
      if (weights.threshold.defined()) rows.threshold.mutable_f32()[i] = weights.threshold.f32()[f];
      float* to = rows.decoder.mutable_f32() + i * reach * width;
      for (const StoredMatrix& target : weights.decoder) {
        target.read_row(f, to);
        to += target.width();
      }
    }
    return rows;
  }

  // Without the decoders, which are most of the files.
  Tensor encoder_products(std::int64_t layer, const Tensor& x) const override {
    const StoredMatrix& encoder = of(layer).encoder;
    const std::int64_t rows = std::max(kFewestRows, block_ / shape().width);
    Tensor products = Tensor::empty({shape().features});
    for (std::int64_t begin = 0; begin < shape().features; begin += rows) {
      const std::int64_t count = std::min(rows, shape().features - begin);
      const Tensor weight = encoder.block(begin, count);
      const Tensor part = pre_activations(x.reshape({1, shape().width}),
                                          {Variable(weight), Variable(), Variable()});
      std::copy_n(part.f32(), count, products.mutable_f32() + begin);
      encoder.release(begin, count);
    }
    return products;
  }

  Tensor decoder_bias(std::int64_t layer) const override { return of(layer).decoder_bias; }
  Tensor skip(std::int64_t layer) const override {
    return of(layer).skip ? of(layer).skip->read() : Tensor();
  }

 private:
  const StoredLayer& of(std::int64_t layer) const {
    require(layer >= 0 && layer < shape().layers, "transcoder: no layer {}, only 0 to {}", layer,
            shape().layers - 1);
    return stored_.layers[static_cast<std::size_t>(layer)];
  }

  StoredTranscoder stored_;
  FeatureActivation activation_;
  std::int64_t block_;
};

}  // namespace

FeatureActivation StoredTranscoder::activation() const {
  if (k > 0) return FeatureActivation::kTopK;
  const bool thresholds = std::any_of(layers.begin(), layers.end(), [](const StoredLayer& layer) {
    return layer.threshold.defined();
  });
  return thresholds ? FeatureActivation::kJumpRelu : FeatureActivation::kRelu;
}

std::unique_ptr<FeatureDictionary> dictionary_of(StoredTranscoder stored, std::int64_t block) {
  return std::make_unique<TranscoderInFiles>(std::move(stored), block);
}

}  // namespace filigree
