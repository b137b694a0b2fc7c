// Gemma (norms around one, scaled embeddings), Gemma 2 (soft caps, windows, norms on both sides of
// a branch) and the text part of Gemma 3 (norms on q and k, angles of their own in layers with a
// window).
#include <array>
#include <cmath>

#include "filigree/error.h"
#include "model/llama_layout.h"

namespace filigree {
namespace {

// Absent it has transformers' default, null says that there is none.
float cap_of(const JsonObject& json, const char* key, double fallback) {
  if (json.raw().contains(key) && !json.has(key)) return 0.0f;
  return static_cast<float>(json.number_or(key, fallback, 1e-3, 1e6));
}

ModelConfig read_any_gemma(const JsonObject& json, const char* family,
                           const LlamaDefaults& defaults) {
  json.boolean_or("attention_bias", false);  // gemma_layout() reads it, without an Error
  ModelConfig config = read_llama_config(json, family, defaults);
  config.norm_around_one = true;
  config.embedding_scale = std::sqrt(static_cast<double>(config.width));
  return config;
}

ModelConfig read_gemma(const JsonObject& json) {
  ModelConfig config = read_any_gemma(json, "gemma",
                                      {.key_heads = 16,
                                       .head_width = 256,
                                       .tied_embeddings = true,
                                       .activation = "gelu_pytorch_tanh"});
  // The first releases wrote another name for it than the models were trained with.
  if (config.activation == Activation::kGelu) config.activation = Activation::kGeluNew;
  return config;
}

// What Gemma 2 and 3 have.
ModelConfig read_later_gemma(const JsonObject& json, const char* family, const RotaryKeys& rotary) {
  ModelConfig config = read_any_gemma(json, family,
                                      {.key_heads = 4,
                                       .head_width = 256,
                                       .tied_embeddings = true,
                                       .activation_key = "hidden_activation",
                                       .activation = "gelu_pytorch_tanh",
                                       .rotary = rotary});
  config.branch_norms = BranchNorms::kBoth;
  config.attention_scale =
      1.0 / std::sqrt(json.number_or("query_pre_attn_scalar", 256.0, 1e-3, 1e9));
  return config;
}

ModelConfig read_gemma2(const JsonObject& json) {
  ModelConfig config = read_later_gemma(json, "gemma2", {});
  config.score_soft_cap = cap_of(json, "attn_logit_softcapping", 50.0);
  config.logit_soft_cap = cap_of(json, "final_logit_softcapping", 30.0);
  const std::int64_t window = json.integer_or("sliding_window", 4096, 1, kMostExtent);
  config.windows =
      read_windows(json, config.layers, window, [](std::int64_t layer) { return layer % 2 == 0; });
  return config;
}

ModelConfig read_gemma3(const JsonObject& json) {
  ModelConfig config = read_later_gemma(json, "gemma3_text",
                                        {.default_base = 1e6,
                                         .by_layer = true,
                                         .window_base = "rope_local_base_freq",
                                         .default_window_base = 1e4});
  config.query_key_norm = QueryKeyNorm::kHead;
  // Scores have no cap, whatever attn_logit_softcapping says.
  if (json.has("final_logit_softcapping"))
    config.logit_soft_cap = cap_of(json, "final_logit_softcapping", 30.0);
  const std::int64_t window = json.integer_or("sliding_window", 4096, 1, kMostExtent);
  // Of so many layers the last sees everything.
  const std::int64_t every = json.integer_or("sliding_window_pattern", 6, 1, kMostExtent);
  config.windows = read_windows(json, config.layers, window,
                                [&](std::int64_t layer) { return (layer + 1) % every != 0; });
  return config;
}

// A model that sees pictures, too: its text part is a model of the family above, and becomes one
// where it is saved.
ModelConfig read_gemma3_text_part(const JsonObject& json) {
  nlohmann::json text = json.object("text_config").raw();
  // What such files leave out.
  const std::array<std::pair<const char*, std::int64_t>, 6> defaults = {
      {{"vocab_size", 262208},
       {"hidden_size", 2304},
       {"intermediate_size", 9216},
       {"num_hidden_layers", 26},
       {"num_attention_heads", 8},
       {"max_position_embeddings", 131072}}};
  for (const auto& [key, value] : defaults)
    if (!text.contains(key)) text[key] = value;
  for (const char* key : {"tie_word_embeddings", "dtype", "torch_dtype", "gate"})
    if (json.has(key) && !text.contains(key)) text[key] = json.raw()[key];
  for (const char* key : {"use_bidirectional_attention", "quantization_config"})
    require(!text.contains(key) || text[key].is_null() || text[key] == false,
            "{}: text_config.{} is not supported", json.source(), key);
  text["model_type"] = "gemma3_text";
  text["architectures"] = {"Gemma3ForCausalLM"};
  return read_gemma3(JsonObject(text, json.source()));
}

// Of a model that sees pictures: its text part alone, under any of the names that there were.
std::string gemma3_name(const ModelConfig& config, std::string_view name) {
  for (const char* part : {"vision_tower.", "multi_modal_projector.", "model.vision_tower.",
                           "model.multi_modal_projector."})
    if (name.starts_with(part)) return "";
  std::string plain(name);
  if (plain.starts_with("model.language_model.")) plain.erase(6, 15);
  if (plain.starts_with("language_model.")) plain.erase(0, 15);
  return llama_name(config, plain);
}

LlamaLayout gemma_layout(const ModelConfig& config) {
  const bool bias = flag_of(config, "attention_bias", false);
  return {.qkv_bias = bias, .output_bias = bias};
}

// Only its configuration is read: it is then one of gemma3_text.
constexpr Family picture_family() {
  Family family = llama_family<gemma_layout>("gemma3", read_gemma3_text_part);
  family.canonical_name = gemma3_name;
  return family;
}

constexpr Family text_family() {
  Family family = llama_family<gemma_layout>("gemma3_text", read_gemma3);
  family.canonical_name = gemma3_name;
  return family;
}

}  // namespace

const Family kGemmaFamily = llama_family<gemma_layout>("gemma", read_gemma);
const Family kGemma2Family = llama_family<gemma_layout>("gemma2", read_gemma2);
const Family kGemma3Family = picture_family();
const Family kGemma3TextFamily = text_family();

}  // namespace filigree
