// The folder of a training run and the checkpoints in it.
//
//   RUN/checkpoints/step-00000500/   what is trained, in its own files (of a language model
//                                    config.json, model.safetensors and with LoRA
//                                    adapters.safetensors), optimizer.safetensors, state.json
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

#include "filigree/train/adamw.h"
#include "filigree/train/settings.h"
#include "filigree/train/trainable.h"

namespace filigree {

struct TrainingState {
  std::int64_t step = 0;  // steps done
  Settings settings;      // of the run; must not change when it is resumed
  nlohmann::json source;  // place in the data
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
  // Called on every rank: the first writes what all have alike, each its own part.
  void save(const Trainable& trained, const AdamW& optimizer, const TrainingState& state, int keep,
            Communicator& ranks);

  // The folders of complete checkpoints, oldest first.
  std::vector<std::filesystem::path> checkpoints() const;

 private:
  void prune(const TrainingState& state, int keep);

  std::filesystem::path path_;
};

// Reads a checkpoint's state; throws Error naming the file when it is damaged.
TrainingState read_training_state(const std::filesystem::path& checkpoint);

// Reads what is trained and the moments into a thing and an optimiser of the same shape, on every
// rank.
void restore_training(const std::filesystem::path& checkpoint, Trainable& trained, AdamW& optimizer,
                      Communicator& ranks);

}  // namespace filigree
