// Next-token prediction: pretraining, and the dense fine-tuned control of a sparse run.
#pragma once

#include "filigree/model/model.h"
#include "filigree/train/head_dropout.h"
#include "filigree/train/objective.h"

namespace filigree {

class LanguageModelling : public Objective {
 public:
  // Throws Error for a share of silent heads that is none.
  explicit LanguageModelling(Model& model, const HeadDropout& silent = {});
  Variable loss(const Batch& batch, std::int64_t micro_step, Communicator& ranks,
                Metrics& metrics) override;
  Settings settings() const override;

 private:
  Model& model_;
  HeadDropout silent_;
};

}  // namespace filigree
