#include "features/replacement.h"

#include <algorithm>

#include "filigree/ops.h"

namespace filigree {
namespace {

// y with all positions but the first of every row of the batch taken from `other`, [B * T, width].
Variable behind_the_first(const Variable& y, const Tensor& other) {
  Tensor mixed = other.clone();
  const std::int64_t batch = y.shape()[0], length = y.shape()[1], width = y.shape()[2];
  for (std::int64_t b = 0; b < batch; ++b)
    std::copy_n(y.value().f32() + b * length * width, width,
                mixed.mutable_f32() + b * length * width);
  return Variable(mixed.reshape({batch, length, width}));
}

Tensor as_rows(const Tensor& value) {
  return value.reshape({value.size(0) * value.size(1), value.size(2)});
}

Tensor sum_of(const Tensor& a, const Tensor& b) { return add(Variable(a), Variable(b)).value(); }

}  // namespace

FeatureReplacement::FeatureReplacement(const FeatureDictionary& dictionary,
                                       std::optional<std::int64_t> only)
    : dictionary_(dictionary), only_(only) {}

void FeatureReplacement::add_to(Taps& taps) {
  const TranscoderShape& shape = dictionary_.shape();
  const FeatureHooks& hooks = dictionary_.hooks();
  const std::int64_t last = only_.value_or(shape.layers - 1);
  const bool crosses = shape.kind == TranscoderKind::kCrossLayer;
  for (std::int64_t l = only_ && !crosses ? last : 0; l <= last; ++l)
    taps.watch(hooks.input_of(l),
               [this, l](std::string_view, const Tensor& value) { read(l, value); });
  for (std::int64_t l = only_.value_or(0); l <= last; ++l)
    taps.intervene(hooks.output_of(l), [this, l](const Variable& y) { return write(l, y); });
}

void FeatureReplacement::read(std::int64_t layer, const Tensor& inputs) {
  const Tensor x = as_rows(inputs);
  // Whichever layer comes first begins a run.
  const TranscoderShape& shape = dictionary_.shape();
  if (layer == 0 || shape.kind == TranscoderKind::kPerLayer)
    written_.resize(static_cast<std::size_t>(shape.layers));
  if (layer == 0) std::fill(written_.begin(), written_.end(), Tensor());
  const SparseCode code = dictionary_.encode(layer, x);
  const Tensor all = dictionary_.written(layer, code);
  for (std::int64_t j = 0; j < shape.reach(layer); ++j) {
    if (only_ && layer + j != *only_) continue;
    Tensor& to = written_[static_cast<std::size_t>(layer + j)];
    const Tensor part = layer_rows(all, j);
    const bool first = !to.defined() || shape.kind == TranscoderKind::kPerLayer;
    to = first ? part.clone() : sum_of(to, part);
  }
  if (const Tensor skip = dictionary_.skip(layer); skip.defined()) {
    Tensor& to = written_[static_cast<std::size_t>(layer)];
    const LinearWeight weight{.weight = Variable(skip), .bias = {}, .out_in = true};
    to = sum_of(to, linear(Variable(x), weight).value());
  }
}

Variable FeatureReplacement::write(std::int64_t layer, const Variable& output) const {
  const Tensor bias = dictionary_.decoder_bias(layer);
  return behind_the_first(output, sum_of(written_[static_cast<std::size_t>(layer)],
                                         bias.reshape({1, bias.elements()})));
}

void ablate_mlps(Taps& taps, const FeatureHooks& hooks, const std::vector<Tensor>& means,
                 std::optional<std::int64_t> only) {
  const auto layers = static_cast<std::int64_t>(means.size());
  for (std::int64_t l = only.value_or(0); l < (only ? *only + 1 : layers); ++l)
    taps.intervene(hooks.output_of(l),
                   [mean = means[static_cast<std::size_t>(l)]](const Variable& y) {
                     const std::int64_t rows = y.shape()[0] * y.shape()[1];
                     const Tensor zeros = Tensor::zeros({rows, mean.elements()});
                     return behind_the_first(y, sum_of(zeros, mean.reshape({1, mean.elements()})));
                   });
}

}  // namespace filigree
