#include "filigree/study/training/dry_run.h"

#include <algorithm>

#include "filigree/model/model.h"
#include "filigree/study/models/memory_estimate.h"

namespace filigree::study {

Json to_json(const DryRun& run) {
  return {{"dry_run", true},
          {"out", run.out},
          {"parameters", run.parameters},
          {"steps", run.steps},
          {"tokens_a_step", run.tokens_a_step},
          {"tokens", run.tokens()},
          {"epochs", run.epochs()},
          {"data", {{"train", run.train_tokens}, {"held_out", run.held_out_tokens}}},
          {"memory_bytes",
           {{"weights_gradients_moments", run.state},
            {"activations", run.activations},
            {"teacher", json_or_null(run.teacher)},
            {"total", run.total_bytes()}}}};
}

DryRun plan_training(const ModelConfig& config, const std::optional<ModelConfig>& teacher,
                     std::int64_t length, const TrainingRequest& request, const TrainingData& data,
                     const Context& context) {
  // Each process has its part of a batch.
  const std::int64_t rows =
      std::max<std::int64_t>(1, request.batch / context.communicator().size());
  const auto memory_of = [&](const ModelConfig& model) {
    return estimate_memory(model, rows, length);
  };
  const MemoryEstimate memory = memory_of(config);
  DryRun run;
  run.out = request.out;
  run.config = config;
  run.parameters = parameter_count(config);
  run.steps = request.steps;
  run.tokens_a_step = request.batch * request.accumulate * length;
  run.train_tokens = data.train.tokens();
  run.held_out_tokens = data.held_out ? data.held_out->tokens() : 0;
  run.state = memory.training_state;
  run.activations = memory.training_activations;
  if (teacher) {
    const MemoryEstimate more = memory_of(*teacher);
    run.teacher = more.weights + more.forward;
  }
  return run;
}

}  // namespace filigree::study
