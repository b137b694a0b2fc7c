// How large a training run would be: nothing is loaded and nothing is written.
#pragma once

#include <cstdint>
#include <string>

#include "model/config.h"
#include "study/context.h"
#include "study/json.h"
#include "study/models/training_memory.h"
#include "study/training/training_run.h"

namespace filigree::study {

struct DryRun {
  std::string out;
  ModelConfig config;
  std::int64_t parameters = 0;
  std::int64_t steps = 0;
  std::int64_t tokens_a_step = 0;
  std::uint64_t train_tokens = 0;  // that there are
  std::uint64_t held_out_tokens = 0;

  TrainingMemory memory;           // of each process
  std::uint64_t memory_there = 0;  // for it; 0: unknown

  std::int64_t tokens() const { return steps * tokens_a_step; }
  double epochs() const {
    return static_cast<double>(tokens()) / static_cast<double>(train_tokens);
  }
};

Json to_json(const DryRun& run);

// Of windows of `length` tokens of a model, as far as the request and the processes decide it.
TrainingSetup training_setup(const ModelConfig& config, std::int64_t length,
                             const TrainingRequest& request, const Context& context);

DryRun plan_training(const TrainingSetup& setup, const TrainingRequest& request,
                     const TrainingData& data, const Context& context);

// Says what the run called `label` will need. Throws Error, before anything is allocated, where
// there is not so much.
void tell_memory(const std::string& label, const TrainingSetup& setup, const Context& context);

}  // namespace filigree::study
