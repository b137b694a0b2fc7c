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
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "features/dictionary.h"
#include "model/model.h"
#include "text/shard_loader.h"
#include "train/objective.h"

namespace filigree {

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

}  // namespace filigree
