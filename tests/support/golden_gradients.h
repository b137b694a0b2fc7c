// Gradients of a model beside those that transformers stored.
#pragma once

#include <algorithm>
#include <cmath>

#include "model/family.h"
#include "support/golden.h"

namespace filigree {

struct GradientPair {
  Tensor found, wanted;  // in the order of the file
};

// Of the parameter with the index `p`.
inline GradientPair gradient_pair(const Model& model, std::size_t p,
                                  const SafetensorsFile& golden) {
  const NamedParameter& parameter = model.parameters()[p];
  const ParameterSpec spec = family_of(model.config().family, "test").parameters(model.config())[p];
  // transformers calls GPT-NeoX's output layer by another name than its files do.
  const bool renamed =
      spec.name == "embed_out.weight" && golden.find("grad." + spec.name) == nullptr;
  GradientPair pair = {
      in_file_order(spec, parameter.variable.grad().on_host()).clone().reshape(spec.stored_shape()),
      golden_tensor(golden, "grad." + (renamed ? "lm_head.weight" : spec.name))};
  // PyTorch leaves out what a padding token's vector does as an input, which is no gradient of the
  // loss: that row is not compared.
  const JsonObject json(model.config().source, "config.json");
  if (spec.name == "model.embed_tokens.weight" && json.has("pad_token_id")) {
    const std::int64_t d = model.config().width, at = json.integer("pad_token_id") * d;
    std::copy_n(pair.wanted.f32() + at, d, pair.found.mutable_f32() + at);
  }
  return pair;
}

// What is zero but for rounding: a bias of keys moves all scores of a query alike.
inline bool is_rounding(const Tensor& gradient) {
  return std::ranges::all_of(gradient.values(), [](float x) { return std::abs(x) < 1e-7f; });
}

}  // namespace filigree
