// Shared by the tests of this module: a small model whose maps are not flat, and prompts for it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "filigree/maps.h"
#include "filigree/model.h"
#include "filigree/random.h"
#include "support/errors.h"
#include "support/models.h"

namespace filigree::analyze_test {

inline std::unique_ptr<Model> small_model(bool gated = false, std::int64_t layers = 3,
                                          std::int64_t heads = 4, std::int64_t context = 64) {
  auto model = make_model(parse_model_config({{"model_type", "gpt2"},
                                              {"n_layer", layers},
                                              {"n_head", heads},
                                              {"n_embd", 8 * heads},
                                              {"n_positions", context},
                                              {"vocab_size", 97}},
                                             "test"),
                          7);
  enlarge_weights(*model, 12.0f);
  if (gated) model->set_gate({{0.25f}});
  return model;
}

inline Prompt random_prompt(std::size_t length, std::uint64_t seed = 1) {
  Random random(seed, 5);
  Prompt prompt;
  for (std::size_t i = 0; i < length; ++i)
    prompt.ids.push_back(static_cast<TokenId>(random.below(97)));
  return prompt;
}

}  // namespace filigree::analyze_test
