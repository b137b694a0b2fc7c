// The task that a study is about: a built-in one or a file, how its prompts are made, and whether a
// model can do it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "analyze/task/check.h"
#include "analyze/task/tasks.h"
#include "study/json.h"
#include "study/loaded_model.h"
#include "study/sample_text.h"

namespace filigree::study {

struct TaskSelection {
  std::string name = {};              // of a task, or a JSONL file
  std::string lines = {};             // those of such a file, which `name` then only names
  std::string corruption = {};        // "": the task's first
  std::optional<Metric> metric = {};  // none: the task's own
  DataSplit split = DataSplit::kHeldOut;
  std::int64_t prompts = 64;
  bool first_token = false;  // of answers of several tokens the first counts
  bool end_of_text = false;  // before every prompt
  // Of tasks that are drawn from one; "": the one that choose_text() finds.
  std::filesystem::path text = {};
};

// Fills in the text of a task that is drawn from one and has none: held-out.txt of the first of the
// folders that has it, else of the bundled dense model. Throws RequestError when there is neither.
// Studies of several models call it once, so that all are asked the same.
TaskSelection choose_text(TaskSelection selection,
                          std::span<const std::filesystem::path> model_folders);
TaskSelection choose_text(TaskSelection selection, std::span<const LoadedModel> models);

// The built-in task of that name, or null for a file. Throws Error when it is neither.
const TaskDefinition* find_task(const std::string& name);

struct LoadedTask {
  TaskPrompts prompts = {};
  Metric metric = Metric::kLogitDifference;
  std::string description = {};
  std::string text = {};  // the file that prompts are passages of; "": of none
};

// With a configuration, only prompts that the model can take. Throws Error when none fits, and
// RequestError for a corruption of a file, which holds its own, and for a text that the task does
// not need or has not got.
LoadedTask load_task(const TaskSelection& selection, const Tokenizer& tokenizer,
                     const ModelConfig* config, std::uint64_t seed);
// As this model takes them; a text that is not named is its own (choose_text).
LoadedTask load_task(const TaskSelection& selection, const LoadedModel& model,
                     const Context& context);

// What figures and pages call a task: of a file its name without the folder.
std::string task_title(const LoadedTask& task);

// Runs the model on clean and corrupt prompts. With a label, the work is reported under it.
TaskCheck check_ability(const LoadedModel& model, const std::vector<TaskPrompt>& prompts,
                        Metric metric, const Context& context, const std::string& label = {});
// Whether a circuit would mean something: better than chance, and the corruption matters.
bool is_able(const TaskCheck& check);

// One model and one task.
struct CheckedTask {
  std::string model = {};
  LoadedTask task = {};
  TaskCheck check = {};
};
CheckedTask check_model_on_task(const TaskSelection& selection, const LoadedModel& model,
                                const Context& context);

// What became of the prompts that were drawn; the prompts themselves are left out.
Json fit_json(const TaskPrompts& prompts);
// The file that its prompts are passages of, or null.
Json text_json(const LoadedTask& task);
// The task with its prompts, as texts and tokens.
Json to_json(const LoadedTask& task);
Json to_json(const TaskCheck& check);
Json to_json(const CheckedTask& checked);
Json to_json(const Estimate& value);
// Of all built-in tasks.
Json task_list_json();

}  // namespace filigree::study
