// filigree circuit: which heads a task needs, in one model or several side by side.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "apps/cli/circuit_report.h"
#include "apps/cli/commands.h"
#include "apps/cli/input.h"
#include "apps/cli/program.h"
#include "base/error.h"
#include "base/strings.h"

namespace filigree::cli {
namespace {

struct CircuitCommand {
  std::vector<std::string> models;
  TaskSelection selection;
  std::string method = "exact";
  std::string replacement = "corrupt";
  std::int64_t steps = 5;
  std::int64_t top = 10;
  double level = 90;
};

// The options with a bar that stops on Ctrl-C.
PatchOptions shown(PatchOptions options, const std::string& label, const Session& session) {
  const auto bar = std::make_shared<std::unique_ptr<Progress>>();
  options.progress = [bar, label, &session](std::int64_t done, std::int64_t total) {
    throw_if_interrupted();
    // The total is known only now.
    if (!*bar) *bar = std::make_unique<Progress>(std::cerr, session.progress(label, "runs", total));
    (*bar)->update(done);
    if (done == total) (*bar)->finish();
  };
  return options;
}

Importance importance_of(const Model& model, const std::vector<TaskPrompt>& prompts,
                         const CircuitCommand& command, const PatchOptions& options,
                         const std::string& label, const Session& session) {
  const std::vector<PatchTarget> heads = all_heads(model.config());
  const PatchOptions work = shown(options, label + " heads", session);
  if (command.method == "exact") return exact_importance(model, prompts, heads, work);
  return attributed_importance(
      model, prompts, heads, command.method == "attribution" ? 0 : static_cast<int>(command.steps),
      work);
}

ModelCircuit find_circuit(const std::string& name, const std::string& label,
                          const CircuitCommand& command, const Session& session) {
  const Tokenizer tokenizer = open_tokenizer(model_folder(name).string());
  const ModelConfig config = read_model_config(name);
  ModelCircuit found;
  found.model = name, found.label = label, found.level = command.level / 100;
  found.task = load_task(command.selection, tokenizer, &config, session.options().seed);
  const std::unique_ptr<Model> model = load_model(name);
  const std::vector<TaskPrompt>& prompts = found.task.prompts.prompts;
  found.check = check_task(
      score(*model, prompts, found.task.metric, [](std::size_t) { throw_if_interrupted(); }),
      prompts);
  if (!found.check.better_than_chance || !found.check.corruption_matters) return found;
  PatchOptions options;
  options.metric = found.task.metric;
  options.replacement = replacement_by_name(command.replacement);
  found.importance = importance_of(*model, prompts, command, options, label, session);
  found.curve = keep_most_important(*model, prompts, *found.importance, {},
                                    shown(options, label + " curve", session));
  return found;
}

void run_circuit(const CircuitCommand& command, Session& session) {
  replacement_by_name(command.replacement);  // before the long work
  for (const std::string& model : command.models) model_folder(model);
  const std::vector<std::string> labels = short_names(command.models);
  std::vector<ModelCircuit> circuits;
  for (std::size_t i = 0; i < command.models.size(); ++i)
    circuits.push_back(find_circuit(command.models[i], labels[i], command, session));
  for (const ModelCircuit& circuit : circuits)
    if (!circuit.curve) session.set_exit_code(kOutOfReach);
  if (!session.json()) {
    session.print(circuit_text(circuits, static_cast<std::size_t>(command.top)));
    return;
  }
  Json models = Json::array();
  for (const ModelCircuit& circuit : circuits) models.push_back(circuit_json(circuit));
  session.print_json({{"task", circuits[0].task.prompts.task},
                      {"corruption", circuits[0].task.prompts.corruption},
                      {"metric", name_of(circuits[0].task.metric)},
                      {"method", command.method},
                      {"steps", command.method == "ig" ? Json(command.steps) : Json()},
                      {"replacement", command.replacement},
                      {"models", models}});
}

}  // namespace

void add_circuit(Program& program) {
  const auto command = std::make_shared<CircuitCommand>();
  CLI::App& app =
      program.add({"circuit",
                   "Which heads a task needs, in models side by side.",
                   {"filigree circuit gpt2 --task ioi", "filigree circuit dense sparse --task copy",
                    "filigree circuit gpt2 --task greater-than --method ig --json",
                    "filigree circuit gpt2 --task my-task.jsonl --level 95 --top 20"}},
                  [command](Session& session) { run_circuit(*command, session); });
  app.add_option("MODEL", command->models, "model folders; sizes are compared with the first")
      ->required();
  app.add_option("--task", command->selection.name, "name of a task (see task list) or JSONL file")
      ->required()
      ->type_name("TASK");
  add_task_options(app, command->selection);
  app.add_option("--method", command->method,
                 "exact (a run a head), attribution (one gradient) or ig (integrated gradients)")
      ->check(CLI::Validator(
          [](std::string& name) {
            if (name == "exact" || name == "attribution" || name == "ig") return std::string();
            return fmt::format("'{}' is none of exact, attribution, ig", printable(name));
          },
          ""))
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--steps", command->steps, "steps of integrated gradients")
      ->check(whole_number(1, 1000))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--replacement", command->replacement,
                 "what heads that are left out become: corrupt, zero, mean or mean-by-position")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--level", command->level, "share of the effect to explain, in percent")
      ->check(number_above(0, 100))
      ->type_name("PERCENT")
      ->default_str("90");
  app.add_option("--top", command->top, "heads listed for each model")
      ->check(whole_number(0, 1 << 20))
      ->type_name("N")
      ->capture_default_str();
}

}  // namespace filigree::cli
