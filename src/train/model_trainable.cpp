#include <algorithm>

#include "base/checksum.h"
#include "filigree/error.h"
#include "filigree/train.h"
#include "train/weights_checksum.h"

namespace filigree {
namespace {

std::string adapters_text(const Model& model) {
  if (!model.lora()) return "no LoRA adapters";
  return fmt::format("LoRA adapters of rank {} and alpha {}", model.lora()->rank,
                     model.lora()->alpha);
}

// The bias that all gates start from; none where they differ, which the checksum tells apart, and
// without a gate.
SettingValue common_bias(const GateConfig& gate) {
  const bool same = gate.on() && std::all_of(gate.bias.begin(), gate.bias.end(),
                                             [&](float bias) { return bias == gate.bias[0]; });
  return same ? SettingValue(decimal(gate.bias[0])) : SettingValue();
}

bool is_vector(const NamedParameter& parameter) { return parameter.variable.shape().rank() == 1; }

}  // namespace

ModelTrainable::ModelTrainable(Model& model, const ModelTraining& training)
    : model_(model), training_(training) {
  require(!training.vectors_only || !model.lora(),
          "adapters are matrices; a run trains them or the vectors alone");
}

std::vector<NamedParameter> ModelTrainable::gate_parameters() const {
  std::vector<NamedParameter> parameters;
  for (std::size_t l = 0; l < model_.gate_biases().size(); ++l)
    parameters.push_back({fmt::format("gate.{}", l), model_.gate_biases()[l]});
  return parameters;
}

std::vector<NamedParameter> ModelTrainable::parameters() const {
  std::vector<NamedParameter> parameters =
      model_.lora() ? model_.lora_parameters() : model_.parameters();
  if (training_.vectors_only)
    std::erase_if(parameters,
                  [](const NamedParameter& parameter) { return !is_vector(parameter); });
  if (training_.gate_biases)
    for (NamedParameter& bias : gate_parameters()) parameters.push_back(std::move(bias));
  return parameters;
}

Settings ModelTrainable::settings() const {
  const ModelConfig& config = model_.config();
  const std::optional<LoraOptions>& lora = model_.lora();
  Settings settings({{"layers", config.layers},
                     {"heads", config.heads},
                     {"width", config.width},
                     {"config", checksum_text(xxh64(config.source.dump()))},
                     {"gate_bias", common_bias(config.gate)},
                     {"per_head_bias", training_.gate_biases},
                     {"lora_rank", lora ? SettingValue(lora->rank) : SettingValue()},
                     {"lora_alpha", lora ? SettingValue(lora->alpha) : SettingValue()}});
  // Where it is not asked for it is not named, so that runs from before it was there can go on.
  if (training_.vectors_only) settings.add({"vectors_only", true});
  if (training_.drawn_from)
    settings.add({"weights_seed", *training_.drawn_from});
  else
    settings.add({"weights", checksum_text(checksum())});
  return settings;
}

std::uint64_t ModelTrainable::checksum() const { return weights_checksum(model_); }

void ModelTrainable::set_requires_grad(bool on) {
  model_.set_requires_grad(on);
  if (training_.vectors_only)
    for (const NamedParameter& parameter : model_.parameters())
      if (!is_vector(parameter)) parameter.variable.set_requires_grad(false);
  if (training_.gate_biases)
    for (const Variable& bias : model_.gate_biases()) bias.set_requires_grad(on);
}

void ModelTrainable::clear_grads() { model_.clear_grads(); }

void ModelTrainable::before_save() { model_.store_gate(); }

void ModelTrainable::save(const std::filesystem::path& folder, Communicator& ranks) const {
  if (ranks.first()) save_model(model_, folder, {.keep_adapters = true});
}

void ModelTrainable::restore(const std::filesystem::path& folder, Communicator& /*ranks*/) {
  // Its checksums were compared when the checkpoint was chosen.
  const auto stored =
      load_model(folder, {.placement = Placement(), .check = ChecksumDepth::kSizes});
  const std::string source = folder.string();
  require(stored->lora() == model_.lora(),
          "resume: '{}' has {} and the model {}; start a new run or give the old values", source,
          adapters_text(*stored), adapters_text(model_));
  restore_parameters(stored->parameters(), model_.parameters(), source);
  restore_parameters(stored->lora_parameters(), model_.lora_parameters(), source);
  ModelTrainable of_stored(*stored);
  restore_parameters(of_stored.gate_parameters(), gate_parameters(), source);
}

}  // namespace filigree
