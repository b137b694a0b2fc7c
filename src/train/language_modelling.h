// Next-token prediction: pretraining, and the dense fine-tuned control of a sparse run. A loss that
// runs away ends it.
#pragma once

#include "model/model.h"
#include "train/divergence.h"
#include "train/head_dropout.h"
#include "train/objective.h"

namespace filigree {

class LanguageModelling : public Objective {
 public:
  // Throws Error for a share of silent heads that is none.
  explicit LanguageModelling(Model& model, const HeadDropout& silent = {});
  Variable loss(const Batch& batch, std::int64_t micro_step, Communicator& ranks,
                Metrics& metrics) override;
  void after_step(const Metrics& metrics) override { watch_.observe(metric(metrics, "loss")); }
  std::optional<std::string> stop_reason() const override { return watch_.reason(); }
  Settings settings() const override;
  nlohmann::json state() const override { return watch_.state(); }
  void restore(const nlohmann::json& state) override { watch_.restore(state); }

 private:
  Model& model_;
  HeadDropout silent_;
  DivergenceWatch watch_;
};

}  // namespace filigree
