#include "model/llama_layout.h"

namespace filigree {
namespace {

ModelConfig read_config(const JsonObject& json) {
  json.boolean_or("attention_bias", false);  // layout() reads them, without an Error
  json.boolean_or("mlp_bias", false);
  return read_llama_config(json, "llama");
}

LlamaLayout layout(const ModelConfig& config) {
  const bool attention = flag_of(config, "attention_bias", false);
  return {attention, attention, flag_of(config, "mlp_bias", false)};
}

}  // namespace

const Family kLlamaFamily = llama_family<layout>("llama", read_config);

}  // namespace filigree
