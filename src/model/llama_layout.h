// Families whose checkpoints have Llama's names: model.layers.N.self_attn.q_proj and so on. Each
// says what of its configuration differs, and which biases there are.
#pragma once

#include "model/families.h"

namespace filigree {

// What a config.json that leaves a key out means, by family.
struct LlamaDefaults {
  std::int64_t key_heads = 0;   // 0: as many as heads
  std::int64_t head_width = 0;  // 0: hidden_size / num_attention_heads
  double norm_epsilon = 1e-6;
  const char* epsilon_key = "rms_norm_eps";
  bool tied_embeddings = false;
  const char* activation_key = "hidden_act";
  const char* activation = "silu";
  RotaryKeys rotary = {};
};

// What they all have unless they say otherwise: extents, RMS norms, rotary positions, a gated MLP
// (or a plain one, whose matrices have GPT-2's names).
ModelConfig read_llama_config(const JsonObject& json, const char* family,
                              const LlamaDefaults& defaults = {});

// A mixture of experts in the place of the MLP, each as wide as `width_key` says.
struct ExpertDefaults {
  std::int64_t experts = 0, per_token = 0;
};
void read_experts(const JsonObject& json, const char* width_key, const ExpertDefaults& defaults,
                  ModelConfig& config);

// What lies in the files beside what the configuration says.
struct LlamaLayout {
  bool qkv_bias = false, output_bias = false, mlp_bias = false;
  bool norm_weights = true;
  bool norm_bias = false;
  bool one_norm = false;  // attention and MLP read the same norm, which stands in the files once
  bool fused = false;     // one matrix of q, k and v, and one of an MLP's gate and up
  bool norms_by_head = false;  // those of each head are a tensor of their own
  bool paired = false;         // pairs that positions turn are beside each other (ParameterSpec)
};

std::vector<ParameterSpec> llama_parameters(const ModelConfig& config, const LlamaLayout& layout);
std::string llama_name(const ModelConfig& config, std::string_view name);
std::unique_ptr<Model> build_llama(const ModelConfig& config,
                                   std::vector<NamedParameter> parameters,
                                   const LlamaLayout& layout);

// A family of which `Layout(config)` gives the layout.
template <LlamaLayout (*Layout)(const ModelConfig&)>
constexpr Family llama_family(std::string_view model_type,
                              ModelConfig (*read_config)(const JsonObject&)) {
  return {model_type, read_config,
          [](const ModelConfig& config) { return llama_parameters(config, Layout(config)); },
          llama_name,
          [](const ModelConfig& config, std::vector<NamedParameter> parameters) {
            return build_llama(config, std::move(parameters), Layout(config));
          }};
}

}  // namespace filigree
