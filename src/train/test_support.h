// Model and data for small runs.
#pragma once

#include "base/random.h"
#include "model/model.h"
#include "train/objective.h"

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
  nlohmann::json state() const override { return {{"served", served_}}; }
  void restore(const nlohmann::json& state) override { served_ = state.at("served"); }

 private:
  std::int64_t served_ = 0;
};

}  // namespace filigree
