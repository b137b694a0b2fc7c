#include "model/copy_model.h"

#include "filigree/error.h"
#include "model/family.h"

namespace filigree {

std::unique_ptr<Model> copy_model(const Model& model, CopiedWeights weights) {
  require(!model.lora(), "copy: the model has LoRA adapters; merge them first");
  std::vector<NamedParameter> parameters;
  for (const NamedParameter& parameter : model.parameters()) {
    const Tensor& value = parameter.variable.value();
    const bool clone = weights == CopiedWeights::kOwn && value.writable();
    parameters.push_back({parameter.name, Variable(clone ? value.clone() : value)});
  }
  const ModelConfig& config = model.config();
  std::unique_ptr<Model> copy =
      family_of(config.family, "copy").build(config, std::move(parameters));
  copy->set_gate(config.gate);
  copy->place(model.placement());
  return copy;
}

}  // namespace filigree
