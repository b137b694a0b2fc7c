// A model trained on token shards, from scratch or from where another training left it.
#pragma once

#include <filesystem>
#include <string>
#include <variant>

#include "study/models/model_shape.h"
#include "study/training/dry_run.h"
#include "study/training/training_run.h"

namespace filigree::study {

struct TrainedModel {
  std::string name;  // or folder; dense
};

struct PretrainRequest {
  std::string shards;
  // A GPT-2 of this shape, whose vocabulary is that of the shards; or the model that this
  // config.json describes, which may leave the vocabulary out; or a trained one to go on with.
  std::variant<ModelShape, std::filesystem::path, TrainedModel> model =
      ModelShape{.layers = 6, .heads = 6, .width = 192, .vocabulary = 0, .context = 256};
  // Of heads that are silent in each window of training (train/head_dropout.h); not together with
  // recomputed activations.
  double drop_heads = 0.0;
  double drop_heads_end = 1.0;   // of the steps, after which none is silent
  double drop_heads_fade = 0.0;  // of the steps, before that, in which their share falls to none
  TrainingRequest training;
};

DryRun plan_pretrain(const PretrainRequest& request, const Context& context);

// Leaves a model folder; evaluates it where the shards hold some text out.
TrainingResult run_pretrain(const PretrainRequest& request, const Context& context);

}  // namespace filigree::study
