// SmolLM 3: Llama with layers that no positions turn, of which some may have a window.
#include "filigree/error.h"
#include "model/llama_layout.h"

namespace filigree {
namespace {

// Which layers are turned: no_rope_layers has a 1 for those, or else every so-manieth is not.
std::vector<bool> turned_layers(const JsonObject& json, std::int64_t layers) {
  std::vector<bool> turned;
  if (json.has("no_rope_layers")) {
    for (const nlohmann::json& layer : json.array("no_rope_layers")) {
      require(layer.is_number_integer() && (layer == 0 || layer == 1),
              "{}: no_rope_layers holds {}; it must be a list of 0 and 1", json.source(),
              layer.dump());
      turned.push_back(layer == 1);
    }
    require(static_cast<std::int64_t>(turned.size()) >= layers,
            "{}: no_rope_layers has {} entries for {} layers", json.source(), turned.size(),
            layers);
    turned.resize(static_cast<std::size_t>(layers));
    return turned;
  }
  const std::int64_t every = json.integer_or("no_rope_layer_interval", 4, 1, kMostExtent);
  for (std::int64_t l = 0; l < layers; ++l) turned.push_back((l + 1) % every != 0);
  return turned;
}

ModelConfig read_smollm3(const JsonObject& json) {
  json.boolean_or("attention_bias", false);  // smollm3_layout() reads them, without an Error
  json.boolean_or("mlp_bias", false);
  ModelConfig config = read_llama_config(
      json, "smollm3", {.key_heads = 4, .tied_embeddings = true, .rotary = {.default_base = 2e6}});
  config.turned = turned_layers(json, config.layers);
  const std::int64_t window = json.integer_or("sliding_window", 0, 1, kMostExtent);
  const bool slides = json.boolean_or("use_sliding_window", false) && window > 0;
  config.windows = read_windows(json, config.layers, window, [&](std::int64_t layer) {
    return slides && !config.turned[static_cast<std::size_t>(layer)];
  });
  return config;
}

LlamaLayout smollm3_layout(const ModelConfig& config) {
  const bool attention = flag_of(config, "attention_bias", false);
  return {.qkv_bias = attention,
          .output_bias = attention,
          .mlp_bias = flag_of(config, "mlp_bias", false)};
}

}  // namespace

const Family kSmolLm3Family = llama_family<smollm3_layout>("smollm3", read_smollm3);

}  // namespace filigree
