// Whether a model can do a task at all: circuits of a behaviour that is not there mean nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "analyze/task/metric.h"
#include "model/model.h"

namespace filigree {

// What the model makes of each prompt, in the order of the prompts.
struct TaskScores {
  std::vector<double> clean, corrupt;                    // the metric
  std::vector<double> clean_accuracy, corrupt_accuracy;  // 0 or 1
};

// Called with the number of prompts done; may throw to stop.
using TaskProgress = std::function<void(std::size_t done)>;

TaskScores score(const Model& model, const std::vector<TaskPrompt>& prompts, Metric metric,
                 const TaskProgress& progress = {});

struct TaskCheck {
  Estimate clean, corrupt, difference;  // of the metric; difference is clean - corrupt, by prompts
  double clean_accuracy = 0, corrupt_accuracy = 0;
  double chance = 0;   // accuracy of guessing among each prompt's candidates
  double p_value = 1;  // probability that guessing is right at least so often
  double least_p = 1;  // the p of a model that is always right
  bool better_than_chance = false;
  // Whether so many prompts can show at all that a model is better than chance.
  bool enough_prompts = false;
  // Whether the corruption lowers the metric by more than twice its standard error: what patching
  // measures as a share of.
  bool corruption_matters = false;
};

inline constexpr double kChanceLevel = 0.01;  // of p_value

TaskCheck check_task(const TaskScores& scores, const std::vector<TaskPrompt>& prompts);

// Probability that independent events of these probabilities happen at least `count` times.
double at_least(std::size_t count, const std::vector<double>& probabilities);

// ids [prompts, T] of the prompts, which are equally long.
Tensor prompt_ids(const PromptRefs& prompts, bool corrupt);

}  // namespace filigree
