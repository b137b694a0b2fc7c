// A small model with weights that matter and prompts of several lengths for it.
#pragma once

#include <memory>
#include <vector>

#include "filigree/model.h"
#include "filigree/random.h"
#include "filigree/tasks.h"
#include "support/models.h"

namespace filigree {

inline constexpr std::int64_t kTestVocabulary = 40;

enum class SmallKind { kDense, kGated, kLlama, kParallel, kOlmo2, kGemma2, kMixture };

inline const char* text_of(SmallKind kind) {
  constexpr const char* kTexts[] = {"Dense", "Gated",  "Llama",  "Parallel",
                                    "Olmo2", "Gemma2", "Mixture"};
  return kTexts[static_cast<int>(kind)];
}

inline std::unique_ptr<Model> small_model(bool gated, std::int64_t layers = 3) {
  nlohmann::json json = {{"model_type", "gpt2"}, {"n_layer", layers},
                         {"n_head", 3},          {"n_embd", 24},
                         {"n_positions", 32},    {"vocab_size", kTestVocabulary}};
  if (gated) json["gate"] = {{"bias", -0.2}};
  auto model = make_model(parse_model_config(json, "small_model"), 11);
  enlarge_weights(*model, 8.0f);
  return model;
}

// Norms behind attention and MLP.
inline bool normed_behind(SmallKind kind) {
  return kind == SmallKind::kOlmo2 || kind == SmallKind::kGemma2;
}

// Of a Llama and its like, four heads share two of keys and values.
inline std::unique_ptr<Model> small_model(SmallKind kind) {
  if (kind == SmallKind::kDense || kind == SmallKind::kGated)
    return small_model(kind == SmallKind::kGated);
  nlohmann::json json = {{"model_type", "llama"},
                         {"num_hidden_layers", 3},
                         {"num_attention_heads", 4},
                         {"num_key_value_heads", 2},
                         {"head_dim", 8},
                         {"hidden_size", 24},
                         {"intermediate_size", 40},
                         {"max_position_embeddings", 32},
                         {"vocab_size", kTestVocabulary}};
  if (kind == SmallKind::kOlmo2) json["model_type"] = "olmo2";
  if (kind == SmallKind::kGemma2)  // windows, and caps that bite
    json.update({{"model_type", "gemma2"},
                 {"sliding_window", 5},
                 {"query_pre_attn_scalar", 8},
                 {"attn_logit_softcapping", 3.0},
                 {"final_logit_softcapping", 6.0}});
  if (kind == SmallKind::kMixture)
    json.update({{"model_type", "olmoe"}, {"num_experts", 8}, {"num_experts_per_tok", 2}});
  ModelConfig config = parse_model_config(json, "small_model");
  if (kind == SmallKind::kParallel) config.residual = ResidualKind::kParallel;
  auto model = make_model(config, 11);
  for (const NamedParameter& parameter : model->parameters()) {
    Tensor& value = parameter.variable.mutable_value();
    for (std::int64_t i = 0; value.shape().rank() == 2 && i < value.elements(); ++i)
      value.mutable_f32()[i] *= 8.0f;
  }
  return model;
}

// Random tokens; the corrupt prompt differs in two places, never in the last.
inline std::vector<TaskPrompt> small_prompts(const std::vector<std::size_t>& lengths) {
  Random random(7);
  const auto token = [&] { return static_cast<TokenId>(random.below(kTestVocabulary)); };
  std::vector<TaskPrompt> prompts;
  for (const std::size_t length : lengths) {
    TaskPrompt prompt;
    for (std::size_t i = 0; i < length; ++i) prompt.clean.push_back(token());
    prompt.corrupt = prompt.clean;
    for (const std::size_t place : {length / 3, length / 2})
      prompt.corrupt[place] =
          static_cast<std::int32_t>((prompt.clean[place] + 1 + token() % 7) % kTestVocabulary);
    prompt.answers = {token()};
    do {
      prompt.wrong = {token()};
    } while (prompt.wrong == prompt.answers);
    prompts.push_back(prompt);
  }
  return prompts;
}

}  // namespace filigree
