// Small models of every kind that the decoder has, for tests: by name, each with weights that
// matter.
#pragma once

#include <cctype>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "filigree/error.h"
#include "filigree/model.h"
#include "filigree/random.h"

namespace filigree {

inline constexpr std::int64_t kSampleVocabulary = 50, kSampleWidth = 24;

inline nlohmann::json sample_gpt2_json() {
  return {{"model_type", "gpt2"},       {"n_layer", 2},      {"n_head", 3},
          {"n_embd", kSampleWidth},     {"n_positions", 32}, {"vocab_size", kSampleVocabulary},
          {"tie_word_embeddings", true}};
}

// Four heads share two of keys and values, and are together wider than the stream.
inline nlohmann::json sample_llama_json() {
  return {{"model_type", "llama"},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"head_dim", 8},
          {"hidden_size", kSampleWidth},
          {"intermediate_size", 40},
          {"max_position_embeddings", 32},
          {"vocab_size", kSampleVocabulary}};
}

inline const nlohmann::json kSampleYarn = {{"rope_type", "yarn"},
                                           {"factor", 4.0},
                                           {"original_max_position_embeddings", 6},
                                           {"beta_fast", 2.0},
                                           {"beta_slow", 0.2}};

inline const nlohmann::json kSampleLongRope = {{"rope_type", "longrope"},
                                               {"original_max_position_embeddings", 6},
                                               {"short_factor", {1.0, 1.1, 1.3, 1.2}},
                                               {"long_factor", {1.5, 2.0, 4.0, 8.0}}};

// Of the families whose config.json has GPT-2's names or others of its own.
inline nlohmann::json sample_own_names_json(const std::string& family) {
  const std::int64_t d = kSampleWidth, V = kSampleVocabulary;
  if (family == "gpt_neo")
    return {{"model_type", family},
            {"num_layers", 2},
            {"num_heads", 3},
            {"hidden_size", d},
            {"max_position_embeddings", 32},
            {"vocab_size", V},
            {"attention_types", {{{"local", "global"}, 1}}},
            {"window_size", 4}};
  if (family == "opt")
    return {{"model_type", family},
            {"num_hidden_layers", 2},
            {"num_attention_heads", 3},
            {"hidden_size", d},
            {"ffn_dim", 40},
            {"vocab_size", V},
            {"max_position_embeddings", 32},
            {"word_embed_proj_dim", d}};
  nlohmann::json json = sample_gpt2_json();
  json["model_type"] = family;
  json["n_inner"] = 40;
  if (family == "gptj") json.update({{"rotary_dim", 6}, {"tie_word_embeddings", false}});
  return json;
}

// Of the families whose config.json is near Llama's, and of others: windows shorter than the tests'
// prompts, caps and bounds that are reached, scaling that is in effect.
inline nlohmann::json sample_family_json(const std::string& family) {
  for (const char* own : {"gpt_neo", "opt", "gptj", "gpt_bigcode"})
    if (family == own) return sample_own_names_json(family);
  nlohmann::json json = sample_llama_json();
  json["model_type"] = family;
  if (family == "gpt_neox") {
    json["num_attention_heads"] = 3;
    json["rotary_pct"] = 0.5;
  }
  if (family == "phi" || family == "stablelm") {
    json["num_attention_heads"] = json["num_key_value_heads"] = 3;
    json["partial_rotary_factor"] = 0.75;
  }
  if (family == "phi") json["qk_layernorm"] = true;
  if (family == "stablelm")
    json.update({{"use_parallel_residual", true}, {"use_qkv_bias", true}, {"qk_layernorm", true}});
  if (family == "mistral" || family == "starcoder2") json["sliding_window"] = 3;
  if (family == "phi3") json.update({{"sliding_window", 3}, {"partial_rotary_factor", 0.75}});
  if (family == "qwen2")
    json.update({{"use_sliding_window", true}, {"sliding_window", 4}, {"max_window_layers", 1}});
  if (family == "olmo") json["clip_qkv"] = 1.0;
  if (family == "olmo3")
    json.update({{"sliding_window", 4},
                 {"layer_types", {"sliding_attention", "full_attention"}},
                 {"rope_scaling", kSampleYarn},
                 {"rope_theta", 300.0}});
  if (family == "smollm3")
    json.update({{"no_rope_layers", {1, 0}},
                 {"use_sliding_window", true},
                 {"sliding_window", 4},
                 {"mlp_bias", true}});
  if (family == "gemma2")
    json.update({{"sliding_window", 4},
                 {"query_pre_attn_scalar", 5},
                 {"attn_logit_softcapping", 2.0},
                 {"final_logit_softcapping", 3.0}});
  if (family == "gemma3_text")
    json.update({{"sliding_window", 4},
                 {"sliding_window_pattern", 2},
                 {"query_pre_attn_scalar", 5},
                 {"rope_local_base_freq", 100.0},
                 {"rope_theta", 5000.0},
                 {"rope_scaling", {{"rope_type", "linear"}, {"factor", 2.0}}}});
  if (family == "qwen3_moe") json["moe_intermediate_size"] = 12;
  if (family == "olmoe" || family == "qwen3_moe")
    json.update({{"num_experts", 4}, {"num_experts_per_tok", 2}, {"norm_topk_prob", true}});
  if (family == "cohere") json.update({{"use_qk_norm", true}, {"logit_scale", 0.4}});
  if (family == "llama")
    json["rope_scaling"] = {{"rope_type", "llama3"},
                            {"factor", 8.0},
                            {"low_freq_factor", 1.0},
                            {"high_freq_factor", 4.0},
                            {"original_max_position_embeddings", 16}};
  return json;
}

// Models of TransformerLens: each kind that its configuration has and no other family.
inline nlohmann::json sample_hooked_json(const std::string& kind) {
  nlohmann::json json = {{"model_type", "hooked_transformer"},
                         {"n_layers", 2},
                         {"n_heads", 3},
                         {"d_model", kSampleWidth},
                         {"d_head", 7},
                         {"d_mlp", 40},
                         {"n_ctx", 32},
                         {"d_vocab", kSampleVocabulary},
                         {"act_fn", "gelu"}};
  if (kind == "attn_only") json.update({{"attn_only", true}, {"normalization_type", "LNPre"}});
  if (kind == "no_norm")
    json.update({{"normalization_type", nullptr},
                 {"positional_embedding_type", "none"},
                 {"d_vocab_out", 53},
                 {"attn_scale", 0.4}});
  if (kind == "bidirectional")
    json.update({{"attention_dir", "bidirectional"}, {"use_attn_scale", false}});
  if (kind == "shortformer")
    json.update(
        {{"positional_embedding_type", "shortformer"}, {"act_fn", "solu_ln"}, {"attn_scale", 4.0}});
  if (kind == "solu")
    json.update({{"act_fn", "solu"}, {"parallel_attn_mlp", true}, {"normalization_type", "RMS"}});
  if (kind == "rotary")
    json.update({{"positional_embedding_type", "rotary"},
                 {"d_head", 8},
                 {"rotary_dim", 6},
                 {"normalization_type", "RMSPre"},
                 {"gated_mlp", true},
                 {"n_heads", 4},
                 {"n_key_value_heads", 2},
                 {"use_qk_norm", true},
                 {"attn_scores_soft_cap", 2.0}});
  if (kind == "solu_folded")
    json.update({{"act_fn", "solu_ln"},
                 {"normalization_type", "LNPre"},
                 {"use_local_attn", true},
                 {"window_size", 4},
                 {"attn_types", {"global", "local"}}});
  return json;
}
inline constexpr const char* kHookedKinds[] = {
    "attn_only", "no_norm", "bidirectional", "shortformer", "solu", "rotary", "solu_folded"};

// "gpt2", "llama", "parallel" (rotary in part, biases), "parallel-gpt2", "family-" and a name, or
// "hooked-" and a kind.
inline ModelConfig sample_config(const std::string& kind) {
  if (kind.starts_with("family-"))
    return parse_model_config(sample_family_json(kind.substr(7)), "test");
  if (kind.starts_with("hooked-"))
    return parse_model_config(sample_hooked_json(kind.substr(7)), "test");
  const bool gpt2 = kind.ends_with("gpt2");
  nlohmann::json json = gpt2 ? sample_gpt2_json() : sample_llama_json();
  if (kind == "parallel") json["attention_bias"] = json["mlp_bias"] = true;
  ModelConfig config = parse_model_config(json, "test");
  if (kind.starts_with("parallel")) config.residual = ResidualKind::kParallel;
  if (kind == "parallel") config.rotary_width = 4;
  return config;
}

inline std::unique_ptr<Model> sample_model(const ModelConfig& config) {
  auto model = make_model(config, 11);
  // Random weights of 0.02 give flat maps; larger ones, as TransformerLens draws them, make every
  // path matter. So do norms that do something, and biases that are not zero.
  const float larger = config.family == "hooked_transformer" ? 1.0f : 8.0f;
  std::uint64_t stream = 100;
  for (const NamedParameter& parameter : model->parameters()) {
    Tensor& value = parameter.variable.mutable_value();
    const std::span<float> values(value.mutable_f32(), static_cast<std::size_t>(value.elements()));
    if (value.shape().rank() == 2) {
      for (float& x : values) x *= larger;
    } else {
      const bool norm = values[0] == 1.0f;
      fill_uniform(values, 3, stream++);
      for (float& x : values) x = norm ? 0.5f + x : 0.4f * x - 0.2f;
    }
  }
  return model;
}

// A kind, and "gated" or "adapted" behind a plus: "llama+gated".
inline std::unique_ptr<Model> sample_model(const std::string& name) {
  const std::string kind = name.substr(0, name.find('+'));
  ModelConfig config = sample_config(kind);
  if (name.find("+gated") != std::string::npos) config.gate.bias = {-0.2f};
  auto model = sample_model(config);
  if (name.find("+adapted") == std::string::npos) return model;
  model->add_lora({.rank = 3, .alpha = 6.0}, 5);
  for (const NamedParameter& parameter : model->lora_parameters()) {
    Tensor& value = parameter.variable.mutable_value();
    const std::span<float> values(value.mutable_f32(), static_cast<std::size_t>(value.elements()));
    fill_uniform(values, 9, static_cast<std::uint64_t>(value.size(0)));
    for (float& x : values) x = 0.6f * x - 0.3f;
  }
  model->set_requires_grad(false);
  return model;
}

// The name as a test's name may have it.
inline std::string sample_test_name(std::string name) {
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

inline Tensor sample_ids(std::int64_t B, std::int64_t T) {
  Tensor ids = Tensor::empty({B, T}, DType::kI32);
  for (std::int64_t i = 0; i < B * T; ++i)
    ids.mutable_i32()[i] = static_cast<std::int32_t>((i * 17 + 5) % kSampleVocabulary);
  return ids;
}

}  // namespace filigree
