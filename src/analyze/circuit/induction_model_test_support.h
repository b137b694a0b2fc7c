// A model of two layers built by hand, whose circuit is known, and prompts for it.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "filigree/error.h"
#include "filigree/model.h"
#include "filigree/random.h"
#include "filigree/tasks.h"

namespace filigree {

// Sizes of the model built by hand: the residual stream has a place for each token, for each
// position, for the token before and for the token to say.
inline constexpr std::int64_t kTokens = 16, kPositions = 16, kWidth = 64, kHeads = 4,
                              kHeadWidth = 16;
inline constexpr std::int64_t kTokenAt = 0, kPositionAt = 16, kBeforeAt = 32, kSayAt = 48;

inline float* weights(const Model& model, const std::string& name) {
  for (const NamedParameter& parameter : model.parameters())
    if (parameter.name == name) return parameter.variable.mutable_value().mutable_f32();
  fail("test: no parameter {}", name);
}

// Lets head 0 of a layer compare `asked` (a place for each of 16 things) of the query with `held`
// of the key, `offset` places further, and copy the key's token to `to`.
inline void wire_head(const Model& model, int layer, std::int64_t asked, std::int64_t held,
                      std::int64_t offset, std::int64_t to) {
  float* qkv = weights(model, fmt::format("transformer.h.{}.attn.c_attn.weight", layer));
  float* out = weights(model, fmt::format("transformer.h.{}.attn.c_proj.weight", layer));
  for (std::int64_t row = 0; row < kWidth; ++row)  // nothing else in this head
    for (std::int64_t j = 0; j < kHeadWidth; ++j)
      for (std::int64_t part = 0; part < 3; ++part) qkv[row * 3 * kWidth + part * kWidth + j] = 0;
  for (std::int64_t j = 0; j < kHeadWidth; ++j)
    for (std::int64_t column = 0; column < kWidth; ++column) out[j * kWidth + column] = 0;
  for (std::int64_t j = 0; j < kHeadWidth; ++j) {
    if (j + offset < kHeadWidth) qkv[(asked + j + offset) * 3 * kWidth + j] = 3;
    qkv[(held + j) * 3 * kWidth + kWidth + j] = 3;
    qkv[(kTokenAt + j) * 3 * kWidth + 2 * kWidth + j] = 0.2f;
    out[j * kWidth + to + j] = 1;
  }
}

// A model of two layers that continues a repeated sequence: head 0 of layer 0 tells each position
// the token before it, head 0 of layer 1 looks for the position that followed this token and says
// its token. The other six heads are noise; the MLPs do nothing.
inline std::unique_ptr<Model> induction_model() {
  auto model = make_model(parse_model_config({{"model_type", "gpt2"},
                                              {"n_layer", 2},
                                              {"n_head", kHeads},
                                              {"n_embd", kWidth},
                                              {"n_positions", kPositions},
                                              {"vocab_size", kTokens},
                                              {"tie_word_embeddings", false}},
                                             "induction_model"),
                          3);
  const auto place = [&](const std::string& name, std::int64_t at, float value) {
    float* table = weights(*model, name);
    std::fill_n(table, kTokens * kWidth, 0.0f);
    for (std::int64_t i = 0; i < kTokens; ++i) table[i * kWidth + at + i] = value;
  };
  place("transformer.wte.weight", kTokenAt, 1);
  place("transformer.wpe.weight", kPositionAt, 1);
  place("lm_head.weight", kSayAt, 3);
  for (const int layer : {0, 1})
    std::fill_n(weights(*model, fmt::format("transformer.h.{}.mlp.c_proj.weight", layer)),
                4 * kWidth * kWidth, 0.0f);
  wire_head(*model, 0, kPositionAt, kPositionAt, 1, kBeforeAt);  // position i asks for i - 1
  wire_head(*model, 1, kTokenAt, kBeforeAt, 0, kSayAt);
  return model;
}

// a b c d e a b -> c; corrupt: the first five are others.
inline std::vector<TaskPrompt> induction_prompts(std::size_t count) {
  Random random(4);
  std::vector<TaskPrompt> prompts;
  while (prompts.size() < count) {
    std::vector<TokenId> tokens(kTokens);
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<TokenId>(i);
    for (std::size_t i = tokens.size() - 1; i > 0; --i)
      std::swap(tokens[i], tokens[static_cast<std::size_t>(random.below(i + 1))]);
    const std::size_t repeat = 2 + static_cast<std::size_t>(random.below(3));
    TaskPrompt prompt;
    for (std::size_t i = 0; i < 5; ++i) {
      prompt.clean.push_back(tokens[i]);
      prompt.corrupt.push_back(tokens[i + 5]);
    }
    for (std::size_t i = 0; i < repeat; ++i) {
      prompt.clean.push_back(tokens[i]);
      prompt.corrupt.push_back(tokens[i]);
    }
    prompt.answers = {tokens[repeat]};
    for (std::size_t i = 0; i < 5; ++i)
      if (i != repeat) prompt.wrong.push_back(tokens[i]);
    prompts.push_back(prompt);
  }
  return prompts;
}

}  // namespace filigree
