// Small models with adapters, for tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "filigree/model.h"
#include "filigree/random.h"
#include "support/errors.h"
#include "support/models.h"

namespace filigree {

inline const nlohmann::json kGated = {{"gate", {{"bias", {{0.1, 0.2, -0.3}, {0.4, -0.2, -0.1}}}}}};
inline const LoraOptions kLora = {.rank = 3, .alpha = 6.0};

inline std::unique_ptr<Model> tiny_model(const nlohmann::json& changes = nlohmann::json::object()) {
  nlohmann::json json = {{"model_type", "gpt2"}, {"n_layer", 2},      {"n_head", 3},
                         {"n_embd", 24},         {"n_positions", 16}, {"vocab_size", 50}};
  json.update(changes);
  auto model = make_model(parse_model_config(json, "test"), 11);
  enlarge_weights(*model, 8.0f);
  return model;
}

// With adapters that matter: B is not zero.
inline std::unique_ptr<Model> adapted_model(
    const nlohmann::json& changes = nlohmann::json::object()) {
  auto model = tiny_model(changes);
  model->add_lora(kLora, 5);
  for (std::size_t i = 1; i < model->lora_parameters().size(); i += 2) {
    Tensor& up = model->lora_parameters()[i].variable.mutable_value();
    const std::span<float> values(up.mutable_f32(), static_cast<std::size_t>(up.elements()));
    fill_uniform(values, i, 7);
    for (float& value : values) value = 0.8f * value - 0.4f;
  }
  return model;
}

inline std::vector<double> logits_of(const Model& model) {
  const Tensor logits = model.forward(ids(2, 9)).value();
  return {logits.values().begin(), logits.values().end()};
}

#define EXPECT_ERROR_WITH(action, part)                                                         \
  do {                                                                                          \
    const std::string message = error_of([&] { action; });                                      \
    EXPECT_NE(message.find((part)), std::string::npos) << "'" << (part) << "' in: " << message; \
  } while (false)

}  // namespace filigree
