// Sparse post-training: closes the attention edges that a model's loss does not need
// (train/sparsification.h), and where asked trains a dense control as long on the same data.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "filigree/study/training/dry_run.h"
#include "filigree/study/training/training_run.h"
#include "filigree/train/sparsification.h"

namespace filigree::study {

struct SparsifyRequest {
  static constexpr double kGateBias = 2.0;

  std::string model;  // folder or name; dense, or with a teacher sparse, to go on with
  std::string shards;
  std::string teacher;              // empty: the model itself, which must be dense then
  std::int64_t length = 0;          // tokens a window; 0: the model's context
  std::optional<double> gate_bias;  // of a dense model, to start from
  bool per_head_bias = false;       // every head learns its own
  bool control = false;             // into OUT/control
  std::int64_t lora_rank = 0;       // 0: every weight is trained
  double lora_alpha = 16.0;
  SparsificationOptions sparsification;  // the seed is the context's
  TrainingRequest training = {.learning_rate = 5e-4};

  std::filesystem::path control_folder() const {
    return std::filesystem::path(training.out) / "control";
  }
  bool needs_teacher() const { return !sparsification.target || sparsification.distillation > 0.0; }
};

DryRun plan_sparsify(const SparsifyRequest& request, const Context& context);

// Evaluates the dense model, the teacher if it is another, the sparse one and the control, where
// the shards hold some text out. Each model that is named is read once.
TrainingResult run_sparsify(const SparsifyRequest& request, const Context& context);

}  // namespace filigree::study
