// The options of filigree sparsify.
#pragma once

#include <CLI/App.hpp>

#include <filesystem>
#include <optional>
#include <string>

#include "apps/cli/training/training_options.h"
#include "filigree/train/sparsification.h"

namespace filigree::cli {

struct SparsifyOptions {
  static constexpr double kGateBias = 2.0;

  std::string model;
  std::string shards;
  std::string teacher;              // empty: the model itself, which must be dense then
  std::int64_t context = 0;         // 0: the model's
  std::optional<double> gate_bias;  // of a dense model, to start from
  bool per_head_bias = false;
  bool control = false;
  std::int64_t lora_rank = 0;  // 0: every weight is trained
  double lora_alpha = 16.0;
  SparsificationOptions sparsification;  // the seed is the session's
  TrainingOptions training = {.learning_rate = 5e-4};

  std::filesystem::path control_folder() const {
    return std::filesystem::path(training.out) / "control";
  }
  bool needs_teacher() const { return !sparsification.target || sparsification.distillation > 0.0; }
};

// Arguments and options, those of training too.
void add_sparsify_options(CLI::App& app, SparsifyOptions& options);

}  // namespace filigree::cli
