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

// Throws Error listing the families there are.
const Family& family_of(std::string_view model_type, const std::string& source);

}  // namespace filigree
