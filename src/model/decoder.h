// The forward pass that the families share: embeddings, blocks of attention and MLP on a residual
// stream, final norm. Runs may start in the middle, keep one position, compute layers again in the
// backward pass, and have gates, taps, adapters and a cache.
//
// A family reads its configuration and says which of its parameters is what; the kinds of norm,
// positions, MLP and residual stream are the configuration's (filigree/model.h).
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "filigree/model.h"
#include "model/family.h"

namespace filigree {

// What the configuration says of the layers (head counts, kinds, epsilon, windows) is filled in by
// make_decoder; a family gives the weights. A norm without a weight has a gain of 1.
struct DecoderBlock {
  NormWeights attention_norm, mlp_norm;                                // what the branches read
  NormWeights attention_post_norm = kNoNorm, mlp_post_norm = kNoNorm;  // what they write
  AttentionWeights attention;
  MlpWeights mlp;
};

struct DecoderWeights {
  Variable token_embedding;     // [V, width]
  Variable position_embedding;  // [context, width], where positions are learned
  std::vector<DecoderBlock> blocks;
  NormWeights final_norm;
  LinearWeight output;  // width -> V, or the classes
};

std::unique_ptr<Model> make_decoder(const ModelConfig& config,
                                    std::vector<NamedParameter> parameters, DecoderWeights weights);

// One walk over the parameters of a family, which lists them or, with their values at hand, puts
// them in their places: the list and the places cannot come apart.
class ParameterWalk {
 public:
  explicit ParameterWalk(std::vector<ParameterSpec>& list) : list_(&list) {}
  explicit ParameterWalk(const std::vector<NamedParameter>& values) : values_(&values) {}

  Variable operator()(std::string name, const Shape& shape, Initial initial = Initial::kNormal,
                      std::int64_t interleaved_heads = 0) {
    return (*this)({std::move(name), shape, initial, 0.02f, interleaved_heads});
  }
  Variable operator()(ParameterSpec spec) {
    if (values_ != nullptr) return values_->at(next_++).variable;
    list_->push_back(std::move(spec));
    return {};
  }
  // A matrix that is stored [out, in] and, unless there is none, a bias.
  LinearWeight linear(const std::string& name, std::int64_t out, std::int64_t in, bool bias,
                      std::int64_t interleaved_heads = 0) {
    LinearWeight layer;
    layer.weight = (*this)(name + ".weight", {out, in}, Initial::kNormal, interleaved_heads);
    if (bias) layer.bias = (*this)(name + ".bias", {out}, Initial::kZeros, interleaved_heads);
    layer.out_in = true;
    return layer;
  }
  // The same of queries or keys whose pairs stand beside each other (ParameterSpec::paired_heads).
  LinearWeight paired_linear(const std::string& name, std::int64_t out, std::int64_t in, bool bias,
                             std::int64_t heads, std::int64_t width) {
    LinearWeight layer;
    layer.weight = (*this)({.name = name + ".weight",
                            .shape = {out, in},
                            .paired_heads = heads,
                            .paired_width = width});
    if (bias)
      layer.bias = (*this)({.name = name + ".bias",
                            .shape = {out},
                            .initial = Initial::kZeros,
                            .paired_heads = heads,
                            .paired_width = width});
    layer.out_in = true;
    return layer;
  }
  NormWeights norm(const std::string& name, std::int64_t width, bool bias,
                   Initial initial = Initial::kOnes) {
    NormWeights norm;
    norm.weight = (*this)(name + ".weight", {width}, initial);
    if (bias) norm.bias = (*this)(name + ".bias", {width}, Initial::kZeros);
    return norm;
  }

 private:
  std::vector<ParameterSpec>* list_ = nullptr;
  const std::vector<NamedParameter>* values_ = nullptr;
  std::size_t next_ = 0;
};

// A family whose parameters `LayOut` walks over.
template <DecoderWeights (*LayOut)(const ModelConfig&, ParameterWalk)>
constexpr Family walked_family(std::string_view model_type,
                               ModelConfig (*read_config)(const JsonObject&),
                               std::string (*canonical_name)(const ModelConfig&,
                                                             std::string_view)) {
  return {model_type, read_config,
          [](const ModelConfig& config) {
            std::vector<ParameterSpec> specs;
            LayOut(config, ParameterWalk(specs));
            return specs;
          },
          canonical_name,
          [](const ModelConfig& config, std::vector<NamedParameter> parameters) {
            DecoderWeights weights = LayOut(config, ParameterWalk(parameters));
            return make_decoder(config, std::move(parameters), std::move(weights));
          }};
}

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
