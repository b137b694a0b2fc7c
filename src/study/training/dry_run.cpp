#include <fmt/format.h>

#include <algorithm>

#include "filigree/model.h"
#include "filigree/names.h"
#include "filigree/training_study.h"

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
          {"memory_bytes", to_json(run.memory)},
          {"memory_there_bytes", run.memory_there}};
}

TrainingSetup training_setup(const ModelConfig& config, std::int64_t length,
                             const TrainingRequest& request, const Context& context) {
  const int processes = context.communicator().size();
  TrainingSetup setup{.config = config};
  setup.batch = std::max<std::int64_t>(1, request.batch / processes);
  setup.length = length;
  setup.accumulates = request.accumulate > 1;
  setup.recompute = request.recompute;
  setup.processes = processes;
  setup.shard_optimizer = request.shard_optimizer;
  setup.placement = context.placement;
  return setup;
}

namespace {

std::uint64_t memory_there(const Context& context) {
  return memory_of_process(context.placement.device, context.communicator().local_size());
}

}  // namespace

DryRun plan_training(const TrainingSetup& setup, const TrainingRequest& request,
                     const TrainingData& data, const Context& context) {
  DryRun run;
  run.out = request.out;
  run.config = setup.config;
  run.parameters = parameter_count(setup.config);
  run.steps = request.steps;
  run.tokens_a_step = request.batch * request.accumulate * setup.length;
  run.train_tokens = data.train.tokens();
  run.held_out_tokens = data.held_out ? data.held_out->tokens() : 0;
  run.memory = training_memory(setup);
  run.memory_there = memory_there(context);
  return run;
}

void tell_memory(const std::string& label, const TrainingSetup& setup, const Context& context) {
  const std::uint64_t there = memory_there(context);
  require_memory(setup, there);
  if (!context.writes()) return;
  context.say(fmt::format("{}: memory {}{}", label, memory_text(training_memory(setup)),
                          there > 0 ? fmt::format("; there are {}", human_bytes(there)) : ""));
}

}  // namespace filigree::study
