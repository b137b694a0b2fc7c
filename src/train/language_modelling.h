// Next-token prediction: pretraining, and the dense fine-tuned control of a sparse run.
#pragma once

#include "filigree/model/model.h"
#include "filigree/train/objective.h"

namespace filigree {

class LanguageModelling : public Objective {
 public:
  explicit LanguageModelling(Model& model) : model_(model) {}
  Variable loss(const Batch& batch, std::int64_t micro_step, Communicator& ranks,
                Metrics& metrics) override;
  Settings settings() const override;

 private:
  Model& model_;
};

}  // namespace filigree
