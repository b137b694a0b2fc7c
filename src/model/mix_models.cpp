#include "model/mix_models.h"

#include "filigree/error.h"

namespace filigree {
namespace {

float mixed(float own, float other, double share) {
  return static_cast<float>((1.0 - share) * static_cast<double>(own) +
                            share * static_cast<double>(other));
}

void check_alike(const Model& model, const Model& other) {
  require(!model.lora() && !other.lora(), "mix: a model has LoRA adapters; merge them first");
  const ModelConfig &config = model.config(), &others_config = other.config();
  require(config.gate.on() == others_config.gate.on(),
          "mix: one model has gates and the other has none; sparse models mix with sparse ones");
  require(config.family == others_config.family && config.layers == others_config.layers &&
              config.heads == others_config.heads,
          "mix: one model is a {} of {} layers of {} heads and the other a {} of {} of {}",
          config.family, config.layers, config.heads, others_config.family, others_config.layers,
          others_config.heads);
  const std::vector<NamedParameter>&own = model.parameters(), &others = other.parameters();
  require(own.size() == others.size(), "mix: one model has {} parameters and the other {}",
          own.size(), others.size());
  for (std::size_t p = 0; p < own.size(); ++p) {
    require(own[p].name == others[p].name, "mix: one model has '{}' where the other has '{}'",
            own[p].name, others[p].name);
    const Shape &shape = own[p].variable.value().shape(),
                &others_shape = others[p].variable.value().shape();
    require(shape == others_shape, "mix: '{}' is {} in one model and {} in the other", own[p].name,
            shape.to_string(), others_shape.to_string());
  }
}

}  // namespace

void mix_models(Model& model, const Model& other, double share) {
  check_alike(model, other);
  for (std::size_t p = 0; p < model.parameters().size(); ++p) {
    const Tensor &own = model.parameters()[p].variable.value(),
                 others = other.parameters()[p].variable.value();
    Tensor sum = Tensor::empty(own.shape());
    const float *a = own.f32(), *b = others.f32();
    float* const to = sum.mutable_f32();
    for (std::int64_t i = 0; i < own.elements(); ++i) to[i] = mixed(a[i], b[i], share);
    model.parameters()[p].variable.mutable_value() = std::move(sum);
  }
  if (!model.config().gate.on()) return;
  GateConfig gate = model.config().gate;
  std::vector<float> biases = other.config().gate.bias;
  if (gate.bias.size() == 1) gate.bias.resize(biases.size(), gate.bias[0]);
  if (biases.size() == 1) biases.resize(gate.bias.size(), biases[0]);
  for (std::size_t i = 0; i < biases.size(); ++i)
    gate.bias[i] = mixed(gate.bias[i], biases[i], share);
  model.set_gate(gate);
}

}  // namespace filigree
