// Adapters on a model of any family. (The layer is filigree/layers.h.)
#include <array>

#include "filigree/error.h"
#include "filigree/layers.h"
#include "filigree/model.h"

namespace filigree {
namespace {

// Beside the streams of make_model, so that one seed can serve both.
constexpr std::uint64_t kFirstStream = std::uint64_t{1} << 40;

struct Projection {
  const char* name;
  const LinearWeight& weight;
  LoraAdapter& adapter;
};

std::array<Projection, 4> projections(AttentionWeights& layer) {
  return {{{"q", layer.q, layer.lora.q},
           {"k", layer.k, layer.lora.k},
           {"v", layer.v, layer.lora.v},
           {"o", layer.o, layer.lora.o}}};
}

}  // namespace

void Model::add_lora(const LoraOptions& options, std::uint64_t seed) {
  require(!lora_, "lora: the model has adapters of rank {} already; merge them first",
          lora_ ? lora_->rank : 0);
  // All are made before the first is put in place: an error leaves the model as it was.
  std::vector<AttentionAdapters> made;
  std::vector<NamedParameter> parameters;
  const std::vector<AttentionWeights*> layers = attention_layers();
  std::uint64_t stream = kFirstStream;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    AttentionWeights layer = *layers[l];
    for (const Projection& projection : projections(layer)) {
      projection.adapter = make_lora(projection.weight, options, seed, stream++);
      for (const Variable& half : {projection.adapter.down, projection.adapter.up})
        half.mutable_value() = half.value().to(placement_.device);
      const std::string name = fmt::format("h.{}.attn.lora_{}.", l, projection.name);
      parameters.push_back({name + "down", projection.adapter.down});
      parameters.push_back({name + "up", projection.adapter.up});
    }
    made.push_back(layer.lora);
  }
  // Gradients that the parameters still hold would be stepped along although they are frozen.
  clear_grads();
  set_requires_grad(false);
  for (std::size_t l = 0; l < layers.size(); ++l) layers[l]->lora = made[l];
  lora_parameters_ = std::move(parameters);
  lora_ = options;
}

void Model::merge_lora() {
  if (!lora_) return;
  for (AttentionWeights* layer : attention_layers()) {
    for (const Projection& projection : projections(*layer))
      filigree::merge_lora(projection.weight, projection.adapter);
    layer->lora = {};
  }
  lora_parameters_.clear();
  lora_.reset();
}

}  // namespace filigree
