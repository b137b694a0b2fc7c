// GPT-J: attention and MLP beside each other behind one layer norm, heads that are turned in part
// and whose pairs stand beside each other in files, a bias of the logits.
#include "filigree/error.h"
#include "model/decoder.h"
#include "model/families.h"

namespace filigree {
namespace {

ModelConfig read_gptj(const JsonObject& json) {
  ModelConfig config;
  config.family = "gptj";
  read_gpt2_extents(json, config);
  config.tied_embeddings = json.boolean_or("tie_word_embeddings", false);
  config.activation = read_activation(json, "activation_function", "gelu_new");
  config.positions = PositionKind::kRotary;
  config.rotary_width = json.integer_or("rotary_dim", 64, 2, kMostExtent);
  require(config.rotary_width % 2 == 0 && config.rotary_width <= config.head_width,
          "{}: rotary_dim {} is not an even number of a head's {} elements", json.source(),
          config.rotary_width, config.head_width);
  config.residual = ResidualKind::kParallel;
  config.source = json.raw();
  return config;
}

DecoderWeights lay_out_gptj(const ModelConfig& config, ParameterWalk walk) {
  const std::int64_t d = config.width, hidden = config.mlp_width;
  const std::int64_t heads = config.heads, turned = config.rotary_width;
  DecoderWeights weights;
  weights.token_embedding = walk("transformer.wte.weight", {config.vocabulary, d});
  for (std::int64_t l = 0; l < config.layers; ++l) {
    const std::string block = fmt::format("transformer.h.{}.", l);
    DecoderBlock& to = weights.blocks.emplace_back();
    to.attention_norm = to.mlp_norm = walk.norm(block + "ln_1", d, true);
    to.attention.q = walk.paired_linear(block + "attn.q_proj", d, d, false, heads, turned);
    to.attention.k = walk.paired_linear(block + "attn.k_proj", d, d, false, heads, turned);
    to.attention.v = walk.linear(block + "attn.v_proj", d, d, false);
    to.attention.o = walk.linear(block + "attn.out_proj", d, d, false);
    to.mlp.in = walk.linear(block + "mlp.fc_in", hidden, d, true);
    to.mlp.out = walk.linear(block + "mlp.fc_out", d, hidden, true);
  }
  weights.final_norm = walk.norm("transformer.ln_f", d, true);
  weights.output.weight = config.tied_embeddings ? weights.token_embedding
                                                 : walk("lm_head.weight", {config.vocabulary, d});
  weights.output.bias = walk("lm_head.bias", {config.vocabulary}, Initial::kZeros);
  weights.output.out_in = true;
  return weights;
}

std::string gptj_name(const ModelConfig& config, std::string_view name) {
  // Buffers that old versions of transformers saved beside the weights.
  for (const char* buffer : {".attn.bias", ".attn.masked_bias", ".attn.embed_positions"})
    if (name.ends_with(buffer)) return "";
  if (name == "lm_head.weight") return config.tied_embeddings ? "" : "lm_head.weight";
  if (name == "lm_head.bias" || name.starts_with("transformer.")) return std::string(name);
  return "transformer." + std::string(name);  // a model saved without its head has no prefix
}

}  // namespace

const Family kGptJFamily = walked_family<lay_out_gptj>("gptj", read_gptj, gptj_name);

}  // namespace filigree
