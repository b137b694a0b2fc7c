// The task a command is asked about: a built-in one or a file, and how its prompts are made.
#pragma once

#include <CLI/App.hpp>

#include <optional>
#include <string>

#include "apps/cli/program/session.h"
#include "filigree/analyze/task/check.h"
#include "filigree/analyze/task/tasks.h"
#include "filigree/model/config.h"

namespace filigree::cli {

struct TaskSelection {
  std::string name;  // of a task, or a JSONL file
  std::string corruption;
  std::string metric;  // "": the task's own
  std::string split = "held-out";
  std::int64_t prompts = 64;
  bool first_token = false;
  bool end_of_text = false;
};

// The options that say how prompts are made and, where there is a choice, measured; `name` is the
// caller's to ask for.
void add_task_options(CLI::App& app, TaskSelection& selection, bool with_metric = true);

// The built-in task of that name, or null for a file. Throws Error when it is neither.
const TaskDefinition* find_task(const std::string& name);

struct LoadedTask {
  TaskPrompts prompts;
  Metric metric = Metric::kLogitDifference;
  std::string description;
};

// With a configuration, only prompts that the model can take. Throws Error when none fits.
LoadedTask load_task(const TaskSelection& selection, const Tokenizer& tokenizer,
                     const ModelConfig* config, std::uint64_t seed);

// "64 of 301 prompts fit; dropped: ...", a line each.
std::string dropped_text(const TaskPrompts& prompts);
Json dropped_json(const TaskPrompts& prompts);

// "better than chance: ..." or plainly that it is not.
std::string verdict_text(const TaskCheck& check);
Json check_json(const TaskCheck& check);

// "1.234 +- 0.056".
std::string estimate_text(const Estimate& value);
Json estimate_json(const Estimate& value);

}  // namespace filigree::cli
