// Model and data for small runs.
#pragma once

#include <memory>

#include "filigree/model.h"
#include "filigree/random.h"
#include "filigree/sparsification.h"
#include "filigree/train.h"

namespace filigree {

// A model that learns Arithmetic in seconds.
inline ModelConfig tiny_config(bool gated) {
  nlohmann::json json = {{"model_type", "gpt2"}, {"n_layer", 2},      {"n_head", 2},
                         {"n_embd", 16},         {"n_positions", 12}, {"vocab_size", 20}};
  if (gated) json["gate"] = {{"bias", {{2.0, 2.0}, {2.0, 2.0}}}};
  return parse_model_config(json, "test");
}

// Each token is followed by itself plus a step that the first token gives: learnable, not trivial.
class Arithmetic : public BatchSource {
 public:
  Batch next() override {
    Random random(3, static_cast<std::uint64_t>(served_++));
    Batch batch{Tensor::empty({4, 8}, DType::kI32), Tensor::empty({4, 8}, DType::kI32)};
    for (std::int64_t b = 0; b < 4; ++b) {
      const auto first = static_cast<std::int32_t>(random.below(20));
      for (std::int32_t t = 0; t < 8; ++t) {
        batch.ids.mutable_i32()[b * 8 + t] = (first + t * (1 + first % 3)) % 20;
        batch.targets.mutable_i32()[b * 8 + t] = (first + (t + 1) * (1 + first % 3)) % 20;
      }
    }
    return batch;
  }
  Settings settings() const override { return {{"data", "arithmetic"}}; }
  nlohmann::json state() const override { return {{"served", served_}}; }
  void restore(const nlohmann::json& state) override { served_ = state.at("served"); }

 private:
  std::int64_t served_ = 0;
};

// Everything that a run of the trainer takes but its folder; gated ones train their biases too.
struct SmallTraining {
  std::unique_ptr<Model> model, teacher;
  std::unique_ptr<ModelTrainable> trained;
  std::unique_ptr<Objective> objective;
  std::unique_ptr<AdamW> optimizer;
  Arithmetic source;
  TrainerOptions options;

  SmallTraining(bool gated, std::int64_t steps, const Placement& placement = {}) {
    model = make_model(tiny_config(gated), 1, placement);
    trained = std::make_unique<ModelTrainable>(*model, ModelTraining{.gate_biases = gated});
    trained->set_requires_grad(true);
    if (gated) {
      teacher = make_model(tiny_config(false), 1, placement);
      // Heads begin with about 0.88 of their edges open, so that this works on their biases too.
      SparsificationOptions sparse;
      sparse.max_open = 0.8;
      objective = std::make_unique<Sparsification>(*model, teacher.get(), sparse);
    } else {
      objective = std::make_unique<LanguageModelling>(*model);
    }
    optimizer = std::make_unique<AdamW>(decay_groups(*trained, 0.1f), AdamWOptions{});
    options.schedule = {3e-3f, 5, steps, 0.1f};
    options.accumulate = 2;
  }
};

}  // namespace filigree
