// The training of a transcoder: batches of what MLPs read and write, what is trained, what is made
// small.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "filigree/autograd.h"
#include "filigree/data.h"
#include "filigree/features.h"
#include "filigree/model.h"
#include "filigree/ranks.h"
#include "filigree/sparsification.h"
#include "filigree/train.h"

namespace filigree {

// -------------------------------------------------------------------------------------------------
// What a model's MLPs read and write, token by token, as batches to train a transcoder on. Nothing
// is kept on disk: the model runs on shuffled windows of the shards until a pool of a million
// tokens or so is full, batches are drawn from the pool in a shuffled order until it is used up,
// and the next pool is filled. The first position of every window is left out, whose activations
// are far larger than all others.
//
// A pool is a function of where the loader stood when it was begun, so that a run that is resumed
// fills it again and goes on with the same bits.
//
// From a given batch on, whole windows of text come instead, each with what the model made of it:
// for training through the model, where a token cannot be without those before it.
//
// Several processes fill a part of every pool each, and all get every batch whole. Windows pass
// through the model on each of them.

// Factors that bring inputs and outputs of each layer to a mean norm of sqrt(width).
struct ActivationScales {
  std::vector<float> input, output;
};

// Windows of text, and what the plain model's output layer read of them.
struct TextWindows {
  Tensor ids, targets;  // [B, T], and the tokens one place on
  Tensor hidden;        // [B, T, width]
  ActivationScales scales;
};

struct ActivationBatch {
  Tensor inputs;   // [layers, tokens, width], scaled, in the precision of the placement
  Tensor targets;  // f32, likewise
  std::optional<TextWindows> windows = {};  // that they are from, in order, if they are whole
};

struct ActivationOptions {
  FeatureHooks hooks = {};
  std::int64_t tokens = 4096;   // a batch
  std::int64_t pool = 1 << 20;  // tokens, at least; a batch at least
  std::int64_t length = 128;    // tokens a window
  std::int64_t windows = 16;    // that the model runs on at once, of all processes together
  std::uint64_t seed = 0;
  // The batch from which on whole windows come, about as many tokens of them; none: never.
  std::optional<std::int64_t> windows_from = {};
  // Called while a pool is filled.
  std::function<void(std::int64_t done, std::int64_t of)> filling = {};
};

class ActivationSource : public SourceOf<ActivationBatch> {
 public:
  // The model must outlive it. Throws Error for options that make no sense, taps that the model
  // does not have, or a split without a window of this length.
  ActivationSource(const Model& model, TokenSplit split, const ActivationOptions& options,
                   Communicator& ranks);

  // Estimated from the first pool, which is filled for it.
  const ActivationScales& scales();

  ActivationBatch next() override;
  ActivationBatch peek();  // the next one, which is not taken
  // The next batches are those of the pool at hand from its beginning, unless whole windows come:
  // for measurements after training, which need not wait for another pool.
  void begin_pool_again() {
    if (!gives_windows()) taken_ = 0;
  }
  // Whether the next batch is of whole windows.
  bool gives_windows() const;
  Settings settings() const override;
  nlohmann::json state() const override;
  void restore(const nlohmann::json& state) override;

  std::int64_t batches_of_a_pool() const;
  // What filling pools has taken so far, with the work of the device, and the memory of one.
  double filling_seconds() const { return filling_seconds_; }
  std::uint64_t pool_memory() const { return pool_memory_; }
  // Memory that the pool of one process takes on its device.
  static std::uint64_t pool_bytes(const ModelConfig& config, const ActivationOptions& options,
                                  const Placement& placement, int processes);
  // Whole windows of a batch.
  static std::int64_t windows_of_a_batch(const ActivationOptions& options);

 private:
  struct Pool {
    std::vector<Tensor> inputs, outputs;  // of each layer [own tokens, width]
  };

  std::int64_t passes() const;
  std::int64_t pool_tokens() const;
  void fill();
  void estimate_scales();
  Tensor drawn(const std::vector<Tensor>& layers, const std::vector<std::int32_t>& tokens,
               const std::vector<float>& scales, DType dtype) const;
  ShardLoader loader_at(const LoaderState& state) const;
  ShardLoader window_loader_at(const LoaderState& state) const;
  ActivationBatch next_windows();

  const Model& model_;
  TokenSplit split_;
  ActivationOptions options_;
  Communicator& ranks_;
  std::uint64_t model_checksum_;
  LoaderState pool_start_;  // where the loader stood
  LoaderState pool_end_;    // where it stands, once the pool is full
  std::uint64_t pool_number_ = 0;
  std::int64_t taken_ = 0;    // batches of the pool
  std::optional<Pool> pool_;  // empty: to be filled
  LoaderState windows_;       // where the loader of whole windows stands
  std::optional<ActivationScales> scales_;
  double filling_seconds_ = 0.0;
  std::uint64_t pool_memory_ = 0;
};

// -------------------------------------------------------------------------------------------------
// A transcoder as what a run trains: each process holds some of its features, and all hold the
// decoder biases and skips. With it is kept how often each feature is active of late.

struct TranscoderStart {
  std::uint64_t seed = 0;
  float threshold = 0.03f;  // of JumpReLU
  // The share of tokens at which each feature is active at first.
  double rate = 0.01;
};

// Encoders of random directions, whose length is about one, with biases such that each feature is
// active at the wanted share of the tokens given ([layers, tokens, width], scaled); decoders zero,
// decoder biases the mean of the targets.
void initialise(Transcoder& transcoder, const ActivationBatch& sample,
                const TranscoderStart& start);

// All values from another transcoder, whole and for activations as they are (fold_scales), whatever
// its activation: of JumpReLU its thresholds too. Throws Error where the shapes differ.
void begin_from(Transcoder& transcoder, Transcoder trained, const ActivationScales& scales);

class TranscoderTrainable : public Trainable {
 public:
  // The transcoder must outlive it. `settings` is of how it was made.
  TranscoderTrainable(Transcoder& transcoder, Settings start);

  Transcoder& transcoder() const { return transcoder_; }

  // The share of tokens at which each of this process's features was active, an average over some
  // past: f32 [layers, features] where the transcoder lies, and copied out layer by layer.
  Tensor& densities() { return densities_; }
  std::vector<std::vector<float>> density() const;

  std::vector<NamedParameter> parameters() const override;
  std::vector<NamedParameter> own_parameters() const override;
  Settings settings() const override;
  void save(const std::filesystem::path& folder, Communicator& ranks) const override;
  // Throws Error when it was saved by another number of processes.
  void restore(const std::filesystem::path& folder, Communicator& ranks) override;

 private:
  Transcoder& transcoder_;
  Settings start_;
  Tensor densities_;
};

// All features of all processes, on the CPU, on every process.
Transcoder gathered(const Transcoder& part, Communicator& ranks);

// For models as they are: the scales of training go into the weights.
void fold_scales(Transcoder& transcoder, const ActivationScales& scales);

// -------------------------------------------------------------------------------------------------
// What the training of a transcoder minimises: its loss, with as many active
// features as are wanted, and a second try for features that are never active.
//
// How many are active is given, not a coefficient: the top-k kinds take so many, at first more of
// them, and the coefficient of the others follows the number that is active (filigree/sparsification.h).
//
// Features that have not been active for long explain, as well as a few of them can, what the
// others leave unexplained (auxiliary loss): so they learn something that is missing, and come
// back.
//
// Batches of whole windows are also learnt from through the model: what it predicts with all MLPs
// replaced by the transcoder (trained_replacement.h) is to be what it predicts by itself,
//
//   loss = reconstruction + weight KL(plain || replaced)

struct TranscoderObjectiveOptions {
  double l0 = 16.0;        // features that are active at a token, of each layer on average
  std::int64_t steps = 1;  // of the run
  double ramp = 0.1;       // share of the steps in which the number falls to l0
  double first_l0 = 4.0;   // times l0 is where it falls from
  float bandwidth = 1.0f;  // of JumpReLU's gradient
  double inactive = 1e-4;  // lambda_P of the kinds that have a coefficient
  MultiplierOptions lambda = {
      .initial = 0.05, .min = 1e-4, .max = 1e3, .rate = 0.2, .gain = 1.0};
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
