// Sparse post-training: closes the attention edges that a model's loss does not need
// (train/sparsification.h), and where asked trains a dense control as long on the same data.
//
// One run presses, recovers and adjusts. For the first part of the steps the multiplier's bound is
// low, so that more edges close than the loss bears; then the bound is higher and the loss comes
// back; at the end the gates of all heads are set on held-out text so that, being certain, they
// cost what was asked for (train/gate_adjustment.h).
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "study/training/dry_run.h"
#include "study/training/training_run.h"
#include "train/sparsification.h"

namespace filigree::study {

struct SparsifyRequest {
  static constexpr double kGateBias = 2.0;

  std::string model;  // folder or name; dense, or with a teacher sparse, to go on with
  std::string shards;
  std::string teacher;              // empty: the model itself, which must be dense then
  std::int64_t length = 0;          // tokens a window; 0: the model's context
  std::optional<double> gate_bias;  // of a dense model, to start from
  bool fixed_bias = false;          // otherwise every head learns its own
  bool control = false;             // into OUT/control; the reference below may ask for it too
  // What the budget is counted from. The control is then trained first, and its loss is the one
  // that the sparse model keeps and whose predictions it learns: a gap can only be measured against
  // a model that stands still, and the gates are set against the control's last loss.
  BudgetReference against = BudgetReference::kDense;
  std::int64_t lora_rank = 0;  // 0: every weight is trained
  double lora_alpha = 16.0;
  bool vectors_only = false;        // biases and norms are trained, matrices stay as they are
  double loss_budget = 0.01;        // nats that the held-out loss may rise
  std::optional<double> margin;     // that the loss of training may rise; none: the budget
  std::int64_t dual_every = 0;      // steps; 0: a thousandth of all, 10 at most
  std::optional<double> dual_gain;  // of the multiplier; none: as the budget asks for
  std::optional<double> most_open;  // none: the default where biases are learnt
  double recovery =
      SparsificationOptions::kRecovery;  // share of the steps, at the end, with the second bound
  bool keep_gates = false;               // as they were trained
  std::int64_t tokens = 0;               // of training, instead of steps; 0: steps
  // What is given of it; the seed is the context's, and what is optional above is derived from the
  // budget and the steps.
  SparsificationOptions sparsification = SparsificationOptions::of_budget(0.01, 1000);
  // A batch or a learning rate of 0 is the one that suits the model: default_batch(),
  // default_learning_rate().
  TrainingRequest training = {.batch = 0, .learning_rate = 0.0};

  std::filesystem::path control_folder() const {
    return std::filesystem::path(training.out) / "control";
  }
  bool trains_control() const { return control || against == BudgetReference::kControl; }
  bool needs_teacher() const { return !sparsification.target || sparsification.distillation > 0.0; }
};

// Windows a step: the multiple of 16 that holds 8,192 tokens. With fewer tokens far more
// edges stay open (docs/results.md); 16 can be shared by 2, 4, 8 and 16 processes.
std::int64_t default_batch(std::int64_t length);

// 0.2 over the model's width and 0.002 at most, since a narrow model bears and needs larger steps;
// 0.0005 for adapters.
double default_learning_rate(std::int64_t width, std::int64_t lora_rank);

DryRun plan_sparsify(const SparsifyRequest& request, const Context& context);

// Evaluates the dense model, the teacher if it is another, the sparse one and the control, where
// the shards hold some text out, and judges the result (sparsify_verdict.h). Each model that is
// named is read once.
TrainingResult run_sparsify(const SparsifyRequest& request, const Context& context);

}  // namespace filigree::study
