// The built-in tasks: behaviours that are known to need few heads, each with one or more ways to
// corrupt a prompt. The sentences are those of the synthetic corpus (text/corpus/pairs.h), so that
// models trained on it know them; GPT-2 does too. Some tasks need no sentences: their prompts are
// passages of any text (text_tasks.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "analyze/task/metric.h"
#include "analyze/task/prompt.h"
#include "analyze/task/task_text.h"
#include "base/random.h"
#include "text/corpus/pairs.h"

namespace filigree {

// What prompts are made of; the text is that of tasks that are drawn from one.
struct TaskMaterial {
  Tokenizer tokenizer;
  std::shared_ptr<const TaskText> text = nullptr;
};

// Nothing when there are no more.
using DrawPair = std::function<std::optional<TaskPair>(Random&)>;

struct TaskCorruption {
  std::string_view name;
  std::string_view description;
  std::function<DrawPair(const TaskMaterial&)> prepare;
};

struct TaskDefinition {
  std::string_view name;
  std::string_view corpus_task;  // whose combinations are held out; "" when none
  std::string_view description;
  Metric metric = Metric::kLogitDifference;
  bool fixed_answers = false;                 // the same candidates for all prompts: see FitOptions
  bool from_text = false;                     // passages of TaskOptions::text, not sentences
  bool first_token = false;                   // of answers of several tokens the first counts
  std::vector<TaskCorruption> corruptions{};  // the first is the default
};

const std::vector<TaskDefinition>& task_definitions();
// By name, or by the name of the corpus's task. Throws Error that lists the nearest.
const TaskDefinition& task_definition(std::string_view name);
// "": the default. Throws Error that lists what there is.
const TaskCorruption& corruption_of(const TaskDefinition& task, std::string_view name);

struct TaskOptions {
  std::size_t prompts = 64;
  std::uint64_t seed = 0;
  DataSplit split = DataSplit::kHeldOut;  // what a model trained on the corpus has not seen
  FitOptions fit = {};                    // some of its settings are the task's own
  std::shared_ptr<const TaskText> text = nullptr;  // for tasks that are drawn from one
};

// Draws pairs until `prompts` different ones fit the tokenizer, or until it is clear that not so
// many will. The same seed gives the same prompts for the same tokenizer and text. Throws Error
// when none fits, saying why, and when a text is needed that is not there.
TaskPrompts make_task(const TaskDefinition& task, const TaskCorruption& corruption,
                      const Tokenizer& tokenizer, const TaskOptions& options);

// Throws Error with the reasons unless there is a prompt.
void require_prompts(const TaskPrompts& prompts);

}  // namespace filigree
