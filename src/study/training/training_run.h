// A training run of a language model on token shards: the loop of train/trainer.h with the log's
// header, progress with what matters, and a model folder at the end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "study/context.h"
#include "study/evaluation/evaluation.h"
#include "study/json.h"
#include "study/training/sparsify_verdict.h"
#include "study/training/training_data.h"
#include "train/gate_adjustment.h"
#include "train/model_trainable.h"
#include "train/objective.h"
#include "train/trainer.h"

namespace filigree::study {

// What every run is asked for.
struct TrainingRequest {
  std::string out = {};  // folder of the run, which becomes the trained model
  std::int64_t steps = 1000;
  std::int64_t batch = 16;      // windows
  std::int64_t accumulate = 1;  // batches a step
  double learning_rate = 1e-3;
  std::int64_t warmup = -1;  // steps; -1: a twentieth of all
  double final_share = 0.1;  // of the learning rate at the end
  double weight_decay = 0.05;
  double beta2 = 0.95;
  double clip = 1.0;
  bool recompute = false;        // activations, which saves memory and does not change the result
  bool shard_optimizer = false;  // AdamW's moments, over the ranks; nor does this
  std::int64_t log_every = 10;
  std::int64_t checkpoint_every = 500;
  int keep = 2;
  std::string held_out =
      {};  // shards whose split "held-out" is evaluated on; empty: those of the run
  std::int64_t evaluate_every = 0;
  std::int64_t held_out_tokens = 200000;
  bool resume = false;

  std::int64_t warmup_steps() const { return warmup >= 0 ? warmup : steps / 20; }
};

struct TrainingResult {
  std::string out;
  RunEnd end = RunEnd::kFinished;
  std::int64_t steps = 0;  // done in all
  std::int64_t asked_steps = 0;
  std::int64_t resumed_from = 0;  // 0: from the start
  std::int64_t tokens = 0;        // trained on by this call
  double seconds = 0.0;
  // Of this process: of all tensors at their peak, and of that AdamW's moments.
  std::uint64_t peak_memory = 0, optimizer_memory = 0;
  Metrics last_step;
  std::string reason;  // of an early stop
  std::vector<EvaluatedModel> held_out;
  std::optional<GateAdjustment> gates;     // of sparse training
  std::optional<SparsifyVerdict> verdict;  // of sparse training that was evaluated

  bool interrupted() const { return end == RunEnd::kInterrupted; }
};

Json to_json(const TrainingResult& result);

// What the first line of every run's log says of the program and the machine.
nlohmann::json run_header(const std::string& run, const Context& context);

// Throws RequestError for values that do not go together.
void check_training(const TrainingRequest& request);

// Throws Error, before anything is written, when `out` holds a model or a run that is not to be
// resumed.
void check_run_folder(const std::filesystem::path& out, bool resume);

// Throws Error when evaluations are asked for and there is nothing to evaluate on; notes the
// latter.
void check_held_out(const TrainingRequest& request, const TrainingData& data,
                    const Context& context);

// One run of a request; sparse training has two, with its control.
struct ModelRun {
  std::string label;  // of the log and the progress: "pretrain", "sparsify", "control"
  std::filesystem::path out;
  std::int64_t length = 0;          // tokens a window
  std::filesystem::path tokenizer;  // folder that has the tokenizer to put beside the model
  // What is done to the trained model before it is saved, unless the run was stopped from outside.
  std::function<void(TrainingResult& result)> before_saving = {};
};

// Trains, and unless it was stopped leaves the model, with adapters merged, and its tokenizer in
// `run.out`. Context::stop saves and stops after the step. The result has no held-out numbers yet.
TrainingResult train_model(const ModelRun& run, ModelTrainable& trained, Objective& objective,
                           const TrainingRequest& request, const TrainingData& data,
                           const Context& context);

// Held-out evaluation of a model, which the tables call `label`. The data must have a held-out
// split.
EvaluatedModel evaluate_held_out(const Model& model, const std::string& label,
                                 const std::filesystem::path& folder, std::int64_t length,
                                 const TrainingRequest& request, const TrainingData& data,
                                 const Context& context);

// Writes OUT/result.json, on the rank that writes, unless the run was interrupted.
void write_result(const TrainingResult& result, const Context& context);

}  // namespace filigree::study
