// The options that every command that trains has.
#pragma once

#include <CLI/App.hpp>

#include <cstdint>
#include <string>

#include "filigree/train/trainer.h"

namespace filigree::cli {

struct TrainingOptions {
  std::string out = {};
  std::int64_t steps = 1000;
  std::int64_t batch = 16;      // windows
  std::int64_t accumulate = 1;  // batches a step
  double learning_rate = 1e-3;
  std::int64_t warmup = -1;  // steps; -1: a twentieth of all
  double final_share = 0.1;  // of the learning rate at the end
  double weight_decay = 0.05;
  double beta2 = 0.95;
  double clip = 1.0;
  bool recompute = false;  // does not change the result
  std::int64_t log_every = 10;
  std::int64_t checkpoint_every = 500;
  int keep = 2;
  std::string held_out = {};
  std::int64_t evaluate_every = 0;
  std::int64_t held_out_tokens = 200000;
  bool resume = false;
  bool dry_run = false;

  std::int64_t warmup_steps() const { return warmup >= 0 ? warmup : steps / 20; }
  // All but header and folder.
  TrainerOptions trainer() const;
};

void add_training_options(CLI::App& app, TrainingOptions& options);

// Throws UsageError for options that do not go together.
void check_training_options(const TrainingOptions& options);

// The options of a command under the heading `group`: numbers in range with the value as default.
CLI::Option* add_count(CLI::App& app, const char* group, const char* name, std::int64_t& value,
                       const char* what, std::int64_t least, std::int64_t most);
CLI::Option* add_number(CLI::App& app, const char* group, const char* name, double& value,
                        const char* what, const CLI::Validator& check);

}  // namespace filigree::cli
