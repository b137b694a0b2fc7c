// A task's prompts traced one by one, and what they share: how many heads carry what the answer
// needs from token to token, which heads and features return from prompt to prompt, how complete
// the graphs are. Models side by side on the same prompts.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "study/circuits/task_selection.h"
#include "study/trace/trace_validation.h"

namespace filigree::study {

struct TaskTraceRequest {
  TaskSelection task = {};
  TraceRequest trace = {};     // but for prompt and target: the answer against a wrong one
  std::int64_t validated = 0;  // features ablated of each prompt
};

// A head over all prompts, by the share of what is carried between the pair looked at.
struct SharedHead {
  HeadId head = {};
  Estimate share = {};
};

// A feature at tokens of one role.
struct SharedFeature {
  FeatureId feature = {};
  std::string role = {};
  double prompts = 0.0;    // share of them whose pruned graph has it
  double influence = 0.0;  // mean over all prompts
};

struct TracedTask {
  std::string model = {}, label = {}, features = {};
  std::int64_t prompts = 0, correct = 0;  // correct: the answer's logit above the wrong one's
  Estimate pair_heads_for_80, heads_for_80, nodes, edges, replacement, completeness, single_share;
  Estimate influence_correlation, predicted_correlation;  // attention frozen; of validated ones
  std::vector<SharedHead> heads = {};                     // strongest first
  std::vector<SharedFeature> shared = {};                 // in the most prompts first
  std::vector<std::pair<std::string, std::int64_t>> pairs = {};  // "S1 to END", how often
  // Heads that reach each share of what the pair carries: mean over prompts.
  std::vector<std::pair<double, double>> curve = {};
};

struct TaskTraceResult {
  TaskTraceRequest request = {};
  std::string task = {};
  std::vector<TracedTask> models = {};
};

TaskTraceResult trace_task(const TaskTraceRequest& request, std::span<const TracedThrough> models,
                           const Context& context);

Json to_json(const TaskTraceResult& result);

}  // namespace filigree::study
