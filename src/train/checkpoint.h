// The folder of a training run and the checkpoints in it.
//
//   RUN/checkpoints/step-00000500/   config.json, model.safetensors, adapters.safetensors (with
//                                    LoRA), optimizer.safetensors, state.json
//   RUN/log.jsonl                    the run log (run_log.h)
//   RUN/config.json, ...             the finished model
//
// A checkpoint is written into a folder beside its place and renamed when complete and on the disk,
// so a checkpoint that has its name is whole, whatever interrupted the run.
#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <optional>
#include <vector>

#include "filigree/model/model.h"
#include "filigree/train/adamw.h"

namespace filigree {

struct TrainingState {
  std::int64_t step = 0;    // steps done
  nlohmann::json settings;  // of the run; must not change when it is resumed
  nlohmann::json source;    // place in the data
  nlohmann::json objective;
  std::optional<double> best;  // lowest held-out loss so far
  std::int64_t best_step = -1;
};

class RunFolder {
 public:
  // Creates the folder if need be; throws Error when it cannot be written.
  explicit RunFolder(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path log_path() const { return path_ / "log.jsonl"; }

  // Writes the checkpoint of state.step and then removes all but the last `keep` and the best.
  void save(const Model& model, const AdamW& optimizer, const TrainingState& state, int keep);

  // The folders of complete checkpoints, oldest first.
  std::vector<std::filesystem::path> checkpoints() const;

 private:
  void prune(const TrainingState& state, int keep);

  std::filesystem::path path_;
};

// Reads a checkpoint's state; throws Error naming the file when it is damaged.
TrainingState read_training_state(const std::filesystem::path& checkpoint);

// Loads weights, adapters, gate biases and moments into a model and an optimiser of the same shape.
// Throws Error when the adapters' rank or alpha is another.
void restore_training(const std::filesystem::path& checkpoint, Model& model, AdamW& optimizer);

// Throws Error naming the first setting that differs.
void require_same_settings(const nlohmann::json& stored, const nlohmann::json& wanted);

}  // namespace filigree
