// Low-rank adapters in folders as peft lays them out, and the gates of a sparse twin beside them:
//
//   adapter_config.json        rank, alpha, the layers they are on, the name of the base model
//   adapter_model.safetensors  base_model.model.LAYER.lora_A.weight [rank, in], .lora_B.weight
//                              [out, rank]; whole tensors of layers that were trained besides
//   gates.json                 {"bias": ...} as the "gate" of config.json has it; peft ignores it
//
// A weight becomes W + scale B A, scale being alpha / rank. Such a folder has no weights of its own
// and is a model together with its base.
#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "filigree/model.h"

namespace filigree {

inline constexpr const char* kAdapterConfig = "adapter_config.json";
inline constexpr const char* kGatesFile = "gates.json";

// Whether the folder is such an adapter, and not a model of its own.
bool is_peft_adapter(const std::filesystem::path& folder);

// The base model as the adapter names it: a folder or a name. Throws Error where it names none.
std::string base_of_adapter(const std::filesystem::path& folder);

// The base's configuration with the adapter's gates.
ModelConfig adapted_config(ModelConfig base, const std::filesystem::path& folder);

// The base with the adapter merged into the weights that it changes, which are copied; the others
// stay in the memory of `base`. Throws Error for adapters that are damaged, do not fit, or do what
// this program does not, by the name of it.
std::unique_ptr<Model> adapted_model(const Model& base, const std::filesystem::path& folder);

// The adapters of a model that was given some (Model::add_lora), as they are written, so that the
// model can be merged and go on.
struct PeftAdapter {
  std::vector<std::string> names = {};
  std::vector<Tensor> matrices = {};
  nlohmann::json config = {};
};

// Where projections are ranges of one matrix, its adapter has their ranks together. Throws Error
// for a model without adapters.
PeftAdapter peft_adapter_of(const Model& model, const std::string& base);
// Whether peft has names for the parameters of the family.
bool has_peft_names(const ModelConfig& config);

// With the gates of the configuration. The file that makes the folder an adapter comes last.
void save_peft_adapter(const PeftAdapter& adapter, const ModelConfig& config,
                       const std::filesystem::path& folder);

}  // namespace filigree
