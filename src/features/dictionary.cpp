#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "filigree/autograd.h"
#include "filigree/error.h"
#include "filigree/features.h"
#include "ops/sparse_decode/sparse_decode.h"

namespace filigree {
namespace {

Tensor chosen_rows(const Tensor& all, std::span<const std::int32_t> chosen) {
  const std::int64_t width = all.elements() / all.size(0);
  Tensor rows = Tensor::empty({static_cast<std::int64_t>(chosen.size()), width});
  for (std::size_t i = 0; i < chosen.size(); ++i)
    std::copy_n(all.f32() + chosen[i] * width, width,
                rows.mutable_f32() + static_cast<std::int64_t>(i) * width);
  return rows;
}

// -> [reach, tokens, width]
Tensor decoded(const SparseCode& code, const Variable& decoder, std::int64_t reach,
               std::int64_t width) {
  const NoGrad constant;
  const DecoderSource source{code, decoder, 0, reach};
  return sparse_decode({&source, 1}, reach, width).value();
}

// A number for every feature, from rows that are read some at a time.
Tensor by_blocks(const FeatureDictionary& dictionary, std::int64_t layer,
                 const std::function<double(const FeatureRows&, std::int64_t)>& of) {
  constexpr std::int64_t kBlock = 256;
  const std::int64_t features = dictionary.shape().features;
  Tensor numbers = Tensor::empty({features});
  for (std::int64_t begin = 0; begin < features; begin += kBlock) {
    std::vector<std::int32_t> block(static_cast<std::size_t>(std::min(kBlock, features - begin)));
    std::iota(block.begin(), block.end(), static_cast<std::int32_t>(begin));
    const FeatureRows rows = dictionary.rows(layer, block);
    for (std::size_t i = 0; i < block.size(); ++i)
      numbers.mutable_f32()[begin + static_cast<std::int64_t>(i)] =
          static_cast<float>(of(rows, static_cast<std::int64_t>(i)));
  }
  return numbers;
}

double product(const float* row, const Tensor& x) {
  double sum = 0;
  for (std::int64_t i = 0; i < x.elements(); ++i) sum += static_cast<double>(row[i]) * x.f32()[i];
  return sum;
}

class TranscoderInMemory final : public FeatureDictionary {
 public:
  TranscoderInMemory(Transcoder transcoder, FeatureHooks hooks, std::int64_t k)
      : transcoder_(std::move(transcoder)), hooks_(std::move(hooks)), k_(k) {
    require(transcoder_.whole() && transcoder_.placement().device == DeviceKind::kCpu,
            "transcoder: a dictionary needs all of the features, on the CPU");
  }

  const TranscoderShape& shape() const override { return transcoder_.shape(); }
  FeatureActivation activation() const override { return transcoder_.activation(); }
  const FeatureHooks& hooks() const override { return hooks_; }

  SparseCode encode(std::int64_t layer, const Tensor& inputs) const override {
    return transcoder_.encode_layer(layer, inputs, {.k = k_}).code;
  }

  FeatureRows rows(std::int64_t layer, std::span<const std::int32_t> features) const override {
    for (const std::int32_t f : features)
      require(f >= 0 && f < shape().features,
              "transcoder: layer {} has no feature {}, only 0 to {}", layer, f,
              shape().features - 1);
    const auto count = static_cast<std::int64_t>(features.size());
    const TranscoderLayer& weights = of(layer);
    FeatureRows rows;
    rows.encoder = chosen_rows(weights.encoder.value(), features);
    rows.encoder_bias = chosen_rows(weights.encoder_bias.value(), features).reshape({count});
    // As encoding has it, to the last bit.
    const Variable threshold = transcoder_.threshold(layer);
    rows.threshold = threshold.defined() ? chosen_rows(threshold.value(), features).reshape({count})
                                         : Tensor::zeros({count});
    rows.decoder = chosen_rows(weights.decoder.value(), features)
                       .reshape({count, shape().reach(layer), shape().width});
    return rows;
  }

  Tensor written(std::int64_t layer, const SparseCode& code) const override {
    return decoded(code, of(layer).decoder, shape().reach(layer), shape().width);
  }

  Tensor decoder_bias(std::int64_t layer) const override {
    return layer_rows(transcoder_.decoder_bias().value(), layer).reshape({shape().width});
  }
  Tensor skip(std::int64_t layer) const override {
    return of(layer).skip.defined() ? of(layer).skip.value() : Tensor();
  }

 private:
  const TranscoderLayer& of(std::int64_t layer) const {
    return transcoder_.layers().at(static_cast<std::size_t>(layer));
  }

  Transcoder transcoder_;
  FeatureHooks hooks_;
  std::int64_t k_;
};

}  // namespace

Tensor FeatureDictionary::encoder_products(std::int64_t layer, const Tensor& x) const {
  return by_blocks(*this, layer, [&](const FeatureRows& rows, std::int64_t i) {
    return product(rows.encoder.f32() + i * x.elements(), x);
  });
}

Tensor FeatureDictionary::decoder_products(std::int64_t layer, const Tensor& x,
                                           std::int64_t targets) const {
  const std::int64_t reach = shape().reach(layer);
  return by_blocks(*this, layer, [&](const FeatureRows& rows, std::int64_t i) {
    double sum = 0;
    for (std::int64_t j = 0; j < std::min(targets, reach); ++j)
      sum += product(rows.decoder.f32() + (i * reach + j) * x.elements(), x);
    return sum;
  });
}

std::string FeatureHooks::input_of(std::int64_t layer) const {
  return fmt::format("blocks.{}.{}", layer, input);
}

std::string FeatureHooks::output_of(std::int64_t layer) const {
  return fmt::format("blocks.{}.{}", layer, output);
}

Tensor FeatureDictionary::written(std::int64_t layer, const SparseCode& code) const {
  const std::vector<std::int32_t> active = active_features(code);
  const std::int64_t reach = shape().reach(layer), width = shape().width;
  if (active.empty()) return Tensor::zeros({reach, code.rows, width});
  // The same code over the active features alone.
  SparseCode among = code;
  among.features = static_cast<std::int64_t>(active.size());
  among.feature = code.feature.clone();
  among.by_feature = {};
  std::int32_t* features = among.feature.mutable_i32();
  const std::int64_t entries = code.entries();
  for (std::int64_t p = 0; p < entries; ++p)
    features[p] = static_cast<std::int32_t>(
        std::lower_bound(active.begin(), active.end(), features[p]) - active.begin());
  const Tensor decoder = rows(layer, active).decoder;
  return decoded(among, Variable(decoder.reshape({among.features, reach * width})), reach, width);
}

std::unique_ptr<FeatureDictionary> dictionary_of(Transcoder transcoder, FeatureHooks hooks,
                                                 std::int64_t k) {
  return std::make_unique<TranscoderInMemory>(std::move(transcoder), std::move(hooks), k);
}

std::vector<std::int32_t> active_features(const SparseCode& code) {
  const Tensor feature = code.feature.to(DeviceKind::kCpu);
  std::vector<std::int32_t> active(feature.i32(), feature.i32() + feature.elements());
  std::sort(active.begin(), active.end());
  active.erase(std::unique(active.begin(), active.end()), active.end());
  return active;
}

}  // namespace filigree
