// How large a training run would be: nothing is loaded and nothing is written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "filigree/model/config.h"
#include "filigree/study/context.h"
#include "filigree/study/json.h"
#include "filigree/study/training/training_run.h"

namespace filigree::study {

struct DryRun {
  std::string out;
  ModelConfig config;
  std::int64_t parameters = 0;
  std::int64_t steps = 0;
  std::int64_t tokens_a_step = 0;
  std::uint64_t train_tokens = 0;  // that there are
  std::uint64_t held_out_tokens = 0;

  // Memory of each process, in bytes.
  std::uint64_t state = 0;  // weights, gradients and moments
  std::uint64_t activations = 0;
  std::optional<std::uint64_t> teacher;  // where a second, frozen model runs along

  std::int64_t tokens() const { return steps * tokens_a_step; }
  double epochs() const {
    return static_cast<double>(tokens()) / static_cast<double>(train_tokens);
  }
  std::uint64_t total_bytes() const { return state + activations + teacher.value_or(0); }
};

Json to_json(const DryRun& run);

// Of windows of `length` tokens.
DryRun plan_training(const ModelConfig& config, const std::optional<ModelConfig>& teacher,
                     std::int64_t length, const TrainingRequest& request, const TrainingData& data,
                     const Context& context);

}  // namespace filigree::study
