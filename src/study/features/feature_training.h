// Trains a transcoder on what a model's MLPs read and write, streamed from the model while it
// trains, and leaves a folder that circuit-tracer reads (features/files).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "features/feature_quality.h"
#include "features/transcoder_objective.h"
#include "io/matrix_type.h"
#include "study/context.h"
#include "study/json.h"
#include "study/loaded_model.h"
#include "study/training/training_data.h"
#include "train/trainer.h"

namespace filigree::study {

struct FeatureTrainingRequest {
  std::string model;   // folder or name
  std::string shards;  // made with its tokenizer
  std::string out = {};
  std::string from = {};  // a transcoder to go on with: its kind, sizes and hooks; empty: a new one
  TranscoderKind kind = TranscoderKind::kCrossLayer;
  FeatureActivation activation = FeatureActivation::kBatchTopK;
  std::int64_t features = 0;  // of a layer; 0: 16 times the model's width
  bool skip = false;
  FeatureHooks hooks = {};
  std::int64_t tokens = 50'000'000;  // of the run
  std::int64_t batch = 4096;         // tokens
  std::int64_t pool = 0;             // tokens that are shuffled together; 0: a million if they fit
  std::int64_t length = 0;           // tokens a window; 0: the model's context
  double learning_rate = 0.0;        // 0: 1e-3 for 2,048 features, less for more
  double final_share = 0.05;
  double clip = 1.0;
  // Of the steps, the last ones, in which it also learns through the model.
  double through_model = 0.2;
  MatrixType stored = MatrixType::kF32;  // of the files
  std::int64_t log_every = 10;
  std::int64_t checkpoint_every = 500;
  int keep = 2;
  bool resume = false;
  std::int64_t held_out_tokens = 50000;       // that the result is measured on; 0: it is not
  TranscoderObjectiveOptions objective = {};  // its steps follow from the tokens

  std::int64_t steps() const { return (tokens + batch - 1) / batch; }
  std::int64_t steps_through_model() const;
};

// How large a run is, before anything is done.
struct FeatureTrainingPlan {
  std::string out;
  TranscoderShape shape;
  std::int64_t steps = 0, tokens = 0, pool = 0;
  std::int64_t steps_through_model = 0;
  double learning_rate = 0.0;
  std::uint64_t train_tokens = 0;  // that there are
  // Memory of each process, in bytes.
  std::uint64_t state = 0;  // weights, gradients and moments
  std::uint64_t pool_bytes = 0;
  std::uint64_t model = 0;
  std::uint64_t batch = 0;  // what a step keeps
  std::uint64_t through_model =
      0;  // what it keeps besides, through the model; the pool is then gone

  std::uint64_t total_bytes() const {
    return state + std::max(pool_bytes, through_model) + model + batch;
  }
};

struct FeatureTrainingResult {
  FeatureTrainingPlan plan;
  RunEnd end = RunEnd::kFinished;
  std::int64_t steps = 0;  // done in all
  std::int64_t resumed_from = 0;
  std::int64_t trained_tokens = 0;  // by this call
  double seconds = 0.0;
  double model_seconds = 0.0;  // of these, in the model's forward passes
  double step_seconds = 0.0;   // of a step without them, the median of the later half
  // Most that was in use at once while it trained, and the activations that it drew from in it.
  std::uint64_t peak_memory = 0, pool_memory = 0;
  Metrics last_step;
  std::optional<FeatureQuality> held_out;

  bool interrupted() const { return end == RunEnd::kInterrupted; }
};

// Throws RequestError for values that do not go together, and Error when the run cannot fit into
// the memory of its device, naming what would help.
FeatureTrainingPlan plan_feature_training(const FeatureTrainingRequest& request,
                                          const Context& context);
FeatureTrainingResult run_feature_training(const FeatureTrainingRequest& request,
                                           const Context& context);
// The same of a model that is loaded, where the context says; the request names it.
FeatureTrainingResult run_feature_training(const FeatureTrainingRequest& request,
                                           const LoadedModel& model, const Context& context);

Json to_json(const FeatureTrainingPlan& plan);
Json to_json(const FeatureTrainingResult& result);

}  // namespace filigree::study
