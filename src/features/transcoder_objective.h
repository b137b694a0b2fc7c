// What the training of a transcoder minimises: its loss (transcoder_loss.h), with as many active
// features as are wanted, and a second try for features that are never active.
//
// How many are active is given, not a coefficient: the top-k kinds take so many, at first more of
// them, and the coefficient of the others follows the number that is active (train/multiplier.h).
//
// Features that have not been active for long explain, as well as a few of them can, what the
// others leave unexplained (auxiliary loss): so they learn something that is missing, and come
// back.
//
// Batches of whole windows are also learnt from through the model: what it predicts with all MLPs
// replaced by the transcoder (trained_replacement.h) is to be what it predicts by itself,
//
//   loss = reconstruction + weight KL(plain || replaced)
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "features/transcoder_loss.h"
#include "features/transcoder_trainable.h"
#include "train/multiplier.h"
#include "train/objective.h"

namespace filigree {

struct TranscoderObjectiveOptions {
  double l0 = 16.0;        // features that are active at a token, of each layer on average
  std::int64_t steps = 1;  // of the run
  double ramp = 0.1;       // share of the steps in which the number falls to l0
  double first_l0 = 4.0;   // times l0 is where it falls from
  float bandwidth = 1.0f;  // of JumpReLU's gradient
  double inactive = 1e-4;  // lambda_P of the kinds that have a coefficient
  MultiplierOptions lambda = {
      .initial = 0.05, .least = 1e-4, .most = 1e3, .rate = 0.2, .gain = 1.0};
  double auxiliary = 1.0 / 32.0;          // weight of the second try; 0: there is none
  std::int64_t auxiliary_features = 512;  // of a layer, at a token
  std::int64_t dead_after = 500000;       // tokens without having been active
  double divergence = 0.1;                // weight of KL, of batches of whole windows
};

// The model that features stand in for, where it is trained through.
struct ReplacedModel {
  const Model* model = nullptr;
  FeatureHooks hooks = {};
};

class TranscoderObjective : public ObjectiveOn<ActivationBatch> {
 public:
  // What is trained must outlive it.
  // The model too, which batches of whole windows need.
  TranscoderObjective(TranscoderTrainable& trained, const TranscoderObjectiveOptions& options,
                      ReplacedModel replaced = {});

  Variable loss(const ActivationBatch& batch, std::int64_t micro_step, Communicator& ranks,
                Metrics& metrics) override;
  void after_step(const Metrics& metrics) override;
  Settings settings() const override;
  nlohmann::json state() const override;
  void restore(const nlohmann::json& state) override;

  // Wanted at a step.
  double wanted_l0(std::int64_t step) const;

 private:
  bool chooses() const;  // a top-k kind
  void observe(const TranscoderLoss& loss, Communicator& ranks, Metrics& metrics);
  float dead_below() const;  // density of a dead feature
  std::vector<std::int32_t> dead_features(std::size_t layer) const;
  void raise_dead();
  Variable auxiliary_loss(const ActivationBatch& batch, const Tensor& difference,
                          Communicator& ranks) const;
  Variable divergence(const TextWindows& windows, const ActivityOptions& activity,
                      Communicator& ranks) const;

  TranscoderTrainable& trained_;
  TranscoderObjectiveOptions options_;
  ReplacedModel replaced_;
  Multiplier lambda_;
  std::int64_t step_ = 0;
  bool any_dead_ = false;  // on any process, after the last step
  // Densities after the last step, copied when they are first asked for.
  mutable std::optional<std::vector<std::vector<float>>> density_;
};

// For a transcoder of a top-k kind: the bound of each layer above which `l0` features are active on
// average, of some batches from the beginning of the source's pool. The
// same on every process.
std::vector<float> calibrated_thresholds(const Transcoder& transcoder, ActivationSource& source,
                                         std::int64_t l0, int batches, Communicator& ranks);

}  // namespace filigree
