#include "analyze/circuit/head_outputs.h"

#include <fmt/format.h>

#include <memory>

#include "filigree/ops.h"

namespace filigree {
namespace {

std::string scale_tap(std::int64_t layer) {
  return fmt::format("blocks.{}.ln1_post.hook_scale", layer);
}

}  // namespace

HeadOutputs::HeadOutputs(const Model& model) {
  for (const LayerWeights& layer : model.weights().layers)
    layers_.push_back({layer.attention_post_norm, layer.attention->o.bias});
}

std::string HeadOutputs::tap(std::int64_t layer) {
  return fmt::format("blocks.{}.attn.hook_result", layer);
}

Tensor HeadOutputs::output(const Behind& behind, const Tensor& result, const Tensor& scale) const {
  const Shape& shape = result.shape();  // [B, T, H, d]
  const std::int64_t heads = shape[2], d = shape[3];
  const auto placed = [&](const Variable& weight) {
    return weight.value().to(result.device()).to(DType::kF32);
  };
  Variable x = result.to(DType::kF32);
  if (behind.bias.defined())
    x = add(x, filigree::scale(placed(behind.bias), 1.0f / static_cast<float>(heads)));
  if (behind.norm.centres()) x = sub(x, mean(x, -1, true));
  const std::int64_t tokens = x.value().elements() / (heads * d);
  const Variable scaled =
      div(x.value().reshape({tokens, heads * d}), scale.to(DType::kF32).reshape({tokens, 1}));
  return mul(scaled.value().reshape(shape), placed(behind.norm.gain())).value();
}

void HeadOutputs::watch(Taps& taps, std::int64_t layer, const TapWatcher& keep) const {
  const Behind& behind = layers_.at(static_cast<std::size_t>(layer));
  if (!behind.norm.on()) {
    taps.watch(tap(layer), keep);
    return;
  }
  // The model passes the heads' results first, then the denominator behind them.
  const auto result = std::make_shared<Tensor>();
  taps.watch(tap(layer), [result](std::string_view, const Tensor& value) { *result = value; });
  taps.watch(scale_tap(layer),
             [this, &behind, layer, result, keep](std::string_view, const Tensor& scale) {
               keep(tap(layer), output(behind, std::exchange(*result, Tensor()), scale));
             });
}

std::set<std::string> HeadOutputs::with_scales(std::set<std::string> names) const {
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const auto layer = static_cast<std::int64_t>(l);
    if (layers_[l].norm.on() && names.contains(tap(layer))) names.insert(scale_tap(layer));
  }
  return names;
}

void HeadOutputs::finish(TapValues& values) const {
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const auto layer = static_cast<std::int64_t>(l);
    const auto result = values.find(tap(layer));
    if (!layers_[l].norm.on() || result == values.end()) continue;
    result->second = output(layers_[l], result->second, values.at(scale_tap(layer)));
    values.erase(scale_tap(layer));
  }
}

}  // namespace filigree
