// The folder of a training run and the checkpoints in it.
//
//   RUN/checkpoints/step-00000500/   what is trained, in its own files (of a language model
//                                    config.json, model.safetensors and with LoRA
//                                    adapters.safetensors), optimizer.safetensors, state.json, and
//                                    the checksums of them all
//   RUN/log.jsonl                    the run log (run_log.h)
//   RUN/lock                         while the run goes on
//   RUN/config.json, ...             the finished model
//
// A checkpoint is written into a folder beside its place and renamed when complete and on the disk,
// and renamed again before it is removed, so one that has its name is whole, whatever interrupted
// the run. Only names that a run gives count: what else lies there is left alone. What is damaged
// later shows by the checksums, and an older checkpoint serves.
#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "base/output_folder.h"
#include "train/adamw.h"
#include "train/settings.h"
#include "train/trainable.h"

namespace filigree {

struct TrainingState {
  std::int64_t step = 0;  // steps done
  Settings settings;      // of the run; must not change when it is resumed
  nlohmann::json source;  // place in the data
  nlohmann::json objective;
  std::optional<double> best;  // lowest held-out loss so far
  std::int64_t best_step = -1;
};

// Where a run can go on.
struct ResumePoint {
  std::filesystem::path checkpoint;  // empty: at the beginning
  std::int64_t step = 0;
  std::vector<std::string> damaged;  // what is wrong with newer ones
};

class RunFolder {
 public:
  // Who keeps the folder to one run: an OutputFolder that the caller holds on the first rank until
  // it has written what comes after the run, or one of lock().
  enum class LockedBy { kRun, kCaller };

  // Creates the folder if need be; throws Error when it cannot be written.
  explicit RunFolder(std::filesystem::path path, LockedBy locked = LockedBy::kRun);

  // On every rank, before anything is written: keeps the folder to this run for as long as the
  // object lives and removes what a killed one left half-made. Throws Error, on every rank, when
  // another process has it, and when something in it is a symbolic link, through which a run would
  // write elsewhere.
  void lock(Communicator& ranks);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path log_path() const { return path_ / "log.jsonl"; }

  // Removes, on the first rank, the checkpoints of steps up to state.step but the last `keep` and
  // the best. A run that goes on does with it what an interrupted one did not come to.
  void prune(const TrainingState& state, int keep, Communicator& ranks);

  // Writes the checkpoint of state.step and then removes all but the last `keep` and the best.
  // Called on every rank: the first writes what all have alike, each its own part.
  void save(const Trainable& trained, const AdamW& optimizer, const TrainingState& state, int keep,
            Communicator& ranks);

  // The folders of complete checkpoints, oldest first.
  std::vector<std::filesystem::path> checkpoints() const { return checkpoints_in(path_); }
  static std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& run);

  // The newest checkpoint whose files are what was written, as their checksums say. Found once, and
  // again after a save. Throws Error when there are checkpoints and all are damaged.
  const ResumePoint& resume_point();

 private:
  void remove_left_behind();

  std::filesystem::path path_;
  LockedBy locked_;
  std::unique_ptr<OutputFolder> lock_;
  std::optional<ResumePoint> resume_point_;
};

// Reads a checkpoint's state; throws Error naming the file when it is damaged.
TrainingState read_training_state(const std::filesystem::path& checkpoint);

// Reads what is trained and the moments into a thing and an optimiser of the same shape, on every
// rank.
void restore_training(const std::filesystem::path& checkpoint, Trainable& trained, AdamW& optimizer,
                      Communicator& ranks);

}  // namespace filigree
