#include "apps/cli/circuits/model_circuits.h"

#include <fmt/format.h>

#include <memory>

#include "apps/cli/program/input.h"
#include "filigree/base/strings.h"

namespace filigree::cli {

std::optional<std::size_t> ModelCircuit::size() const {
  const CurvePoint* point = found ? found->curve.at(options.level) : nullptr;
  return point == nullptr ? std::nullopt : std::optional(point->parts);
}

std::vector<ModelCircuit> find_model_circuits(const std::string& name, const std::string& label,
                                              const TaskSelection& selection,
                                              std::span<const SearchOptions> kinds,
                                              SweepState* state, const std::string& section,
                                              const Session& session) {
  const std::filesystem::path folder = model_folder(name);
  const ModelConfig config = read_model_config(folder);
  ModelCircuit checked;
  checked.model = name, checked.label = label;
  checked.task =
      load_task(selection, open_tokenizer(folder.string()), &config, session.options().seed);
  const std::unique_ptr<Model> model = load_model(folder, {.placement = session.placement()});
  const std::vector<TaskPrompt>& prompts = checked.task.prompts.prompts;
  checked.check = check_task(
      score(*model, prompts, checked.task.metric, [](std::size_t) { throw_if_interrupted(); }),
      prompts);
  const bool able = checked.check.better_than_chance && checked.check.corruption_matters;
  std::vector<ModelCircuit> circuits;
  for (const SearchOptions& options : kinds) {
    ModelCircuit& circuit = circuits.emplace_back(checked);
    circuit.options = options;
    if (!able) continue;
    SweepSection* kept = nullptr;
    if (state != nullptr)
      kept = &state->section(section, search_key(*model, circuit.task, options));
    if (kept != nullptr && kept->steps() > 0)
      session.note(fmt::format("{}: goes on after {} steps", printable(label), kept->steps()));
    const std::string what =
        kinds.size() == 1
            ? label
            : fmt::format("{} {} {}", label, circuit.task.prompts.task, plural_of(options.parts));
    circuit.found = search_circuit(*model, circuit.task, options, what, kept, session);
  }
  return circuits;
}

}  // namespace filigree::cli
