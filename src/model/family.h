// What a model family provides. Adding a family is one file that defines these and one line in
// family.cpp.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "filigree/json/object.h"
#include "filigree/model/model.h"

namespace filigree {

// How a parameter starts in a model that is made, not read.
enum class Initial { kNormal, kZeros, kOnes };

struct ParameterSpec {
  std::string name;  // as this program writes it
  Shape shape;
  Initial initial = Initial::kNormal;
  float deviation = 0.02f;  // of kNormal
};

struct Family {
  std::string_view model_type;

  // Reads config.json. Throws Error for values that the forward pass does not implement.
  ModelConfig (*read_config)(const JsonObject& json);

  std::vector<ParameterSpec> (*parameters)(const ModelConfig& config);

  // The parameter that a checkpoint's tensor name stands for, "" for tensors that are known and not
  // needed (masks, tied copies); other names are returned as they are.
  std::string (*canonical_name)(const ModelConfig& config, std::string_view name);

  // The parameters are those of parameters(), in that order.
  std::unique_ptr<Model> (*build)(const ModelConfig& config,
                                  std::vector<NamedParameter> parameters);
};

// Of any extent in a configuration: far above every model, far below overflow.
inline constexpr std::int64_t kMostExtent = 1 << 24;

// The activation that config.json calls `key`, by transformers' names; the fallback when it is
// absent. Throws Error listing those that there are.
Activation read_activation(const JsonObject& json, std::string_view key, std::string_view fallback);

// The base of rotary positions: rope_theta, alone as older files have it or in the section
// rope_parameters of transformers 5; 10000 when absent. Throws Error for a kind of scaling
// (rope_scaling, or the section's rope_type), since none is implemented.
double read_rotary_base(const JsonObject& json);

// Throws Error listing the families there are.
const Family& family_of(std::string_view model_type, const std::string& source);

}  // namespace filigree
