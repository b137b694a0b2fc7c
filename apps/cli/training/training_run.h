// A training run as a command does it: the loop of train/trainer.h with shards as data, a bar with
// what matters, signals that save and stop, the log's header, and a model folder at the end.
#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>
#include <vector>

#include "apps/cli/data/shard_input.h"
#include "apps/cli/program/session.h"
#include "apps/cli/training/evaluation_report.h"
#include "apps/cli/training/training_options.h"
#include "filigree/train/model_trainable.h"
#include "filigree/train/objective.h"
#include "filigree/train/trainer.h"

namespace filigree::cli {

// What is trained, and on what. The references must outlive the run.
struct TrainingRun {
  std::string label;                // "pretrain", "sparsify", "control"
  std::filesystem::path out;        // folder of this run
  std::int64_t length = 0;          // tokens a window
  std::filesystem::path tokenizer;  // folder that has the tokenizer to put beside the model
};

struct TrainingOutcome {
  TrainerResult result;
  double seconds = 0.0;
  std::int64_t tokens = 0;  // trained on by this process

  bool interrupted() const { return result.end == TrainerResult::End::kInterrupted; }
};

// Throws Error, before anything is written, when `out` holds a model or a run that is not to be
// resumed.
void check_run_folder(const std::filesystem::path& out, bool resume);

// Throws Error when evaluations are asked for and there is nothing to evaluate on; notes the
// latter.
void check_held_out(const TrainingOptions& options, const TrainingData& data,
                    const Session& session);

// Trains, and unless it was interrupted leaves the model and its tokenizer in `run.out`. Catches
// SIGINT and SIGTERM.
TrainingOutcome run_training(const TrainingRun& run, ModelTrainable& trained, Objective& objective,
                             const TrainingOptions& options, const TrainingData& data,
                             const Session& session);

// Held-out evaluation of a model, with a bar. The data must have a held-out split.
EvaluatedModel evaluate_held_out(const Model& model, const std::string& label,
                                 const std::filesystem::path& folder, std::int64_t length,
                                 const TrainingOptions& options, const TrainingData& data,
                                 const Session& session);

}  // namespace filigree::cli
