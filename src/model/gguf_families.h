// What GGUF files call the keys of a configuration and the tensors of a model, against Hugging
// Face's names. One entry of the table in gguf_families.cpp is an architecture; a new family gets
// one there, whether the program runs it yet or not.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "filigree/model.h"
#include "io/checkpoint.h"
#include "io/gguf.h"
#include "io/gguf_writer.h"

namespace filigree {

struct GgufKey {
  enum class Kind { kInteger, kNumber, kTruth };
  const char* gguf;  // behind "ARCHITECTURE."
  const char* hf;
  Kind kind = Kind::kInteger;
  bool required = true;
};

// "{}" stands for the number of a layer; ".weight" and ".bias" follow.
struct GgufTensor {
  const char* gguf;
  const char* hf;
  StoredForm form = StoredForm::kPlain;
};

struct GgufFamily {
  std::string_view architecture;  // general.architecture
  std::string_view model_type;    // config.json
  std::string_view model_class;   // of transformers
  std::vector<GgufKey> keys;
  std::vector<GgufTensor> tensors;
  // What no table says, both ways. `prefix` is "ARCHITECTURE.".
  void (*read)(const GgufFile& file, const std::string& prefix, nlohmann::json& config);
  void (*write)(const ModelConfig& config, const std::string& prefix, GgufEntries& entries);
};

// Our own key: the biases of gates, one or one a layer and head. Other programs do not read it.
inline constexpr const char* kGgufGateKey = "filigree.gate.bias";

// By architecture, and by model_type. Throw Error listing those there are.
const GgufFamily& gguf_family(const GgufFile& file);
const GgufFamily& gguf_family_of(std::string_view model_type, const std::string& source);

// The config.json that Hugging Face's folder of this model would have.
nlohmann::json gguf_config(const GgufFile& file);
// The same back: general.architecture and the keys of the architecture.
void write_gguf_config(const ModelConfig& config, const std::string& source, GgufEntries& entries);

// The parameter that a tensor of the file is, by Hugging Face's name; the name as it is where the
// family has no such tensor. Empty for tensors that the configuration was read from.
struct GgufParameter {
  std::string name;
  StoredForm form = StoredForm::kPlain;
};
GgufParameter parameter_of(const GgufFamily& family, std::string_view tensor);
// And back. Throws Error for a parameter that files of the architecture do not have.
GgufParameter tensor_of(const GgufFamily& family, std::string_view parameter);

}  // namespace filigree
