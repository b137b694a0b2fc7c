#include "filigree/error.h"
#include "filigree/names.h"
#include "model/decoder.h"
#include "model/families.h"

namespace filigree {
namespace {

// Which layers look at a window only: attention_layers lists them; attention_types, from which
// transformers makes that list, says [[["global", "local"], 12]].
std::vector<bool> local_layers(const JsonObject& json, std::int64_t layers) {
  std::vector<bool> local;
  const auto add = [&](const nlohmann::json& kind) {
    const std::string name = kind.is_string() ? kind.get<std::string>() : kind.dump();
    require(name == "global" || name == "local",
            "{}: attention of the kind '{}' is not supported; 'global' and 'local' are",
            json.source(), printable(name));
    require(static_cast<std::int64_t>(local.size()) < layers,
            "{}: attention_types or attention_layers name more than num_layers {} layers",
            json.source(), layers);
    local.push_back(name == "local");
  };
  if (json.has("attention_layers")) {
    for (const nlohmann::json& kind : json.array("attention_layers")) add(kind);
  } else {
    for (const nlohmann::json& item : json.array("attention_types")) {
      require(item.is_array() && item.size() == 2 && item[0].is_array() && !item[0].empty() &&
                  item[1].is_number_integer() && item[1].get<std::int64_t>() > 0,
              "{}: attention_types holds {}; it must be [[kinds, times], ...]", json.source(),
              printable(item.dump(), 100));
      const auto times = item[1].get<std::int64_t>();
      for (std::int64_t i = 0; i < times; ++i)
        for (const nlohmann::json& kind : item[0]) add(kind);
    }
  }
  require(static_cast<std::int64_t>(local.size()) == layers,
          "{}: attention_types or attention_layers name {} layers, num_layers {}", json.source(),
          local.size(), layers);
  return local;
}

ModelConfig read_config(const JsonObject& json) {
  ModelConfig config;
  config.family = "gpt_neo";
  config.layers = json.integer("num_layers", 1, 10000);
  config.heads = config.key_heads = json.integer("num_heads", 1, 10000);
  config.width = json.integer("hidden_size", 1, kMostExtent);
  require(config.width % config.heads == 0, "{}: hidden_size {} is not a multiple of num_heads {}",
          json.source(), config.width, config.heads);
  config.head_width = config.width / config.heads;
  config.mlp_width = json.integer_or("intermediate_size", 4 * config.width, 1, kMostExtent);
  config.context = json.integer("max_position_embeddings", 1, kMostExtent);
  config.vocabulary = json.integer("vocab_size", 1, kMostExtent);
  config.norm_epsilon = json.number_or("layer_norm_epsilon", 1e-5, 0.0, 1.0);
  config.tied_embeddings = json.boolean_or("tie_word_embeddings", true);
  config.activation = read_activation(json, "activation_function", "gelu_new");
  config.attention_scale = 1.0;  // its scores are not scaled
  const std::int64_t window = json.integer_or("window_size", 256, 1, kMostExtent);
  bool any = false;
  for (const bool local : local_layers(json, config.layers)) {
    config.windows.push_back(local ? window : 0);
    any = any || local;
  }
  if (!any) config.windows.clear();
  config.source = json.raw();
  return config;
}

DecoderWeights lay_out(const ModelConfig& config, ParameterWalk walk) {
  const std::int64_t d = config.width, hidden = config.mlp_width;
  DecoderWeights weights;
  weights.token_embedding = walk("transformer.wte.weight", {config.vocabulary, d});
  weights.position_embedding = walk("transformer.wpe.weight", {config.context, d});
  for (std::int64_t l = 0; l < config.layers; ++l) {
    const std::string block = fmt::format("transformer.h.{}.", l);
    const std::string attention = block + "attn.attention.";
    DecoderBlock& to = weights.blocks.emplace_back();
    to.attention_norm = walk.norm(block + "ln_1", d, true);
    to.attention.q = walk.linear(attention + "q_proj", d, d, false);
    to.attention.k = walk.linear(attention + "k_proj", d, d, false);
    to.attention.v = walk.linear(attention + "v_proj", d, d, false);
    to.attention.o = walk.linear(attention + "out_proj", d, d, true);
    to.mlp_norm = walk.norm(block + "ln_2", d, true);
    to.mlp.in = walk.linear(block + "mlp.c_fc", hidden, d, true);
    to.mlp.out = walk.linear(block + "mlp.c_proj", d, hidden, true);
  }
  weights.final_norm = walk.norm("transformer.ln_f", d, true);
  weights.output.weight = config.tied_embeddings ? weights.token_embedding
                                                 : walk("lm_head.weight", {config.vocabulary, d});
  weights.output.out_in = true;
  return weights;
}

std::string canonical_name(const ModelConfig& config, std::string_view name) {
  // Buffers that old versions of transformers saved beside the weights.
  if (name.ends_with(".attention.bias") || name.ends_with(".attention.masked_bias")) return "";
  if (name == "lm_head.weight") return config.tied_embeddings ? "" : "lm_head.weight";
  if (name.starts_with("transformer.")) return std::string(name);
  return "transformer." + std::string(name);  // a model saved without its head has no prefix
}

}  // namespace

const Family kGptNeoFamily = walked_family<lay_out>("gpt_neo", read_config, canonical_name);

}  // namespace filigree
