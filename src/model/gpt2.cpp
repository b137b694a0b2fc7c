#include <cmath>

#include "filigree/error.h"
#include "model/decoder.h"
#include "model/families.h"

namespace filigree {
namespace {

ModelConfig read_config(const JsonObject& json) {
  ModelConfig config;
  config.family = "gpt2";
  read_gpt2_extents(json, config);
  config.tied_embeddings = json.boolean_or("tie_word_embeddings", true);
  config.activation = read_activation(json, "activation_function", "gelu_new");
  if (!json.boolean_or("scale_attn_weights", true)) config.attention_scale = 1.0;
  config.scale_by_layer = json.boolean_or("scale_attn_by_inverse_layer_idx", false);
  config.source = json.raw();
  return config;
}

std::vector<ParameterSpec> parameters(const ModelConfig& config) {
  const std::int64_t d = config.width, hidden = config.mlp_width;
  // Matrices that write to the residual stream start smaller, by the number of writers.
  const float writer = 0.02f / std::sqrt(2.0f * static_cast<float>(config.layers));
  std::vector<ParameterSpec> specs = {
      {"transformer.wte.weight", {config.vocabulary, d}, Initial::kNormal},
      {"transformer.wpe.weight", {config.context, d}, Initial::kNormal, 0.01f},
  };
  for (std::int64_t l = 0; l < config.layers; ++l) {
    const std::string block = fmt::format("transformer.h.{}.", l);
    const auto add = [&](const char* name, const Shape& shape, Initial initial,
                         float deviation = 0.02f) {
      specs.push_back({block + name, shape, initial, deviation});
    };
    add("ln_1.weight", {d}, Initial::kOnes);
    add("ln_1.bias", {d}, Initial::kZeros);
    add("attn.c_attn.weight", {d, 3 * d}, Initial::kNormal);
    add("attn.c_attn.bias", {3 * d}, Initial::kZeros);
    add("attn.c_proj.weight", {d, d}, Initial::kNormal, writer);
    add("attn.c_proj.bias", {d}, Initial::kZeros);
    add("ln_2.weight", {d}, Initial::kOnes);
    add("ln_2.bias", {d}, Initial::kZeros);
    add("mlp.c_fc.weight", {d, hidden}, Initial::kNormal);
    add("mlp.c_fc.bias", {hidden}, Initial::kZeros);
    add("mlp.c_proj.weight", {hidden, d}, Initial::kNormal, writer);
    add("mlp.c_proj.bias", {d}, Initial::kZeros);
  }
  specs.push_back({"transformer.ln_f.weight", {d}, Initial::kOnes});
  specs.push_back({"transformer.ln_f.bias", {d}, Initial::kZeros});
  if (!config.tied_embeddings)
    specs.push_back({"lm_head.weight", {config.vocabulary, d}, Initial::kNormal});
  return specs;
}

std::string canonical_name(const ModelConfig& config, std::string_view name) {
  // Buffers that old versions of transformers saved beside the weights.
  if (name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias")) return "";
  if (name == "lm_head.weight") return config.tied_embeddings ? "" : "lm_head.weight";
  if (name.starts_with("transformer.")) return std::string(name);
  return "transformer." + std::string(name);  // the checkpoints on the hub have no prefix
}

std::unique_ptr<Model> build(const ModelConfig& config, std::vector<NamedParameter> parameters) {
  const std::int64_t d = config.width;
  ParametersInOrder take(parameters);
  DecoderWeights weights;
  weights.token_embedding = take.next();
  weights.position_embedding = take.next();
  for (std::int64_t l = 0; l < config.layers; ++l) {
    DecoderBlock block;
    block.attention_norm = take.norm();
    const LinearWeight fused = take.linear();  // [d, 3 d]: q, k, v side by side
    block.attention.q = {fused.weight, fused.bias, false, 0, d};
    block.attention.k = {fused.weight, fused.bias, false, d, d};
    block.attention.v = {fused.weight, fused.bias, false, 2 * d, d};
    block.attention.o = take.linear();
    block.mlp_norm = take.norm();
    block.mlp.in = take.linear();
    block.mlp.out = take.linear();
    weights.blocks.push_back(std::move(block));
  }
  weights.final_norm = take.norm();
  weights.output.weight = config.tied_embeddings ? weights.token_embedding : take.next();
  weights.output.out_in = true;
  return make_decoder(config, std::move(parameters), std::move(weights));
}

}  // namespace

const Family kGpt2Family = {"gpt2", read_config, parameters, canonical_name, build};

}  // namespace filigree
