// filigree circuit: which heads, MLPs or edges a task needs, in one model or several side by side.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>
#include <span>

#include "apps/cli/circuits/circuit_output.h"
#include "apps/cli/circuits/circuit_report.h"
#include "apps/cli/commands.h"
#include "apps/cli/program/input.h"
#include "apps/cli/program/program.h"

namespace filigree::cli {
namespace {

struct CircuitCommand {
  std::vector<std::string> models;
  TaskSelection selection;
  std::string parts = "heads";
  std::string method;  // "": by parts
  std::string select = "top-k";
  std::string replacement = "corrupt";
  std::string state;
  std::int64_t steps = 5;
  std::int64_t candidates = 8;
  std::int64_t top = 10;
  double level = 90;
  CircuitOutput output;
};

struct Named {
  std::string_view name;
  int value;
};
constexpr Named kParts[] = {{"heads", static_cast<int>(Parts::kHeads)},
                            {"heads+mlps", static_cast<int>(Parts::kHeadsAndMlps)},
                            {"edges", static_cast<int>(Parts::kEdges)},
                            {"attention-edges", static_cast<int>(Parts::kAttentionEdges)}};
// Edge attribution patching is what attribution of edges is called.
constexpr Named kMethods[] = {{"exact", static_cast<int>(Method::kExact)},
                              {"attribution", static_cast<int>(Method::kAttribution)},
                              {"ig", static_cast<int>(Method::kIntegrated)},
                              {"eap", static_cast<int>(Method::kAttribution)},
                              {"eap-ig", static_cast<int>(Method::kIntegrated)}};
constexpr Named kSelections[] = {{"top-k", static_cast<int>(Selection::kTop)},
                                 {"greedy", static_cast<int>(Selection::kGreedy)},
                                 {"greedy-add", static_cast<int>(Selection::kGreedyAddition)}};

template <typename Names>
const Named* find_name(const Names& names, std::string_view wanted) {
  for (const Named& named : names)
    if (named.name == wanted) return &named;
  return nullptr;
}

template <typename Names>
CLI::Validator one_of_names(const Names& names) {
  std::vector<std::string> known;
  for (const Named& named : names) known.emplace_back(named.name);
  return one_of(std::move(known));
}

SearchOptions search_options(const CircuitCommand& command) {
  SearchOptions options;
  options.parts = static_cast<Parts>(find_name(kParts, command.parts)->value);
  // The best of what takes about a minute at GPT-2 small.
  if (!command.method.empty())
    options.method = static_cast<Method>(find_name(kMethods, command.method)->value);
  else if (options.parts == Parts::kEdges)
    options.method = Method::kIntegrated;
  else if (options.parts == Parts::kAttentionEdges)
    options.method = Method::kAttribution;
  options.selection = static_cast<Selection>(find_name(kSelections, command.select)->value);
  options.replacement = replacement_by_name(command.replacement);
  options.steps = static_cast<int>(command.steps);
  options.candidates = static_cast<std::size_t>(command.candidates);
  options.level = command.level / 100;
  check_options(options);
  return options;
}

std::vector<ModelCircuit> find_circuits(const CircuitCommand& command, const SearchOptions& options,
                                        SweepState* state, const Session& session) {
  const std::vector<std::string> labels = short_names(command.models);
  std::vector<ModelCircuit> circuits;
  for (std::size_t i = 0; i < command.models.size(); ++i)
    circuits.push_back(find_model_circuits(command.models[i], labels[i], command.selection,
                                           std::span(&options, 1), state,
                                           fmt::format("model {}", i + 1), session)
                           .front());
  return circuits;
}

// With a file that keeps what is done, also when the work is stopped or fails.
std::vector<ModelCircuit> find_with_state(const CircuitCommand& command,
                                          const SearchOptions& options, const Session& session) {
  catch_termination();
  SweepState state(command.state, session.writes());
  try {
    std::vector<ModelCircuit> circuits = find_circuits(command, options, &state, session);
    state.save();
    return circuits;
  } catch (const Interrupted&) {
    state.save();
    session.note(fmt::format("stopped; the same command goes on from '{}'", command.state));
    throw;
  }
}

void run_circuit(const CircuitCommand& command, Session& session) {
  const SearchOptions options = search_options(command);  // before the long work
  for (const std::string& model : command.models) model_folder(model);
  if (!command.output.folder.empty() && session.writes()) prepare_output(command.output, session);
  const std::vector<ModelCircuit> circuits = command.state.empty()
                                                 ? find_circuits(command, options, nullptr, session)
                                                 : find_with_state(command, options, session);
  for (const ModelCircuit& circuit : circuits)
    if (!circuit.found) session.set_exit_code(kOutOfReach);
  if (!session.writes()) return;
  Json json;
  if (session.json() || !command.output.folder.empty())
    json = circuits_json(circuits, Scores::kEvery);
  std::vector<std::string> files;
  if (!command.output.folder.empty()) files = write_circuit_files(circuits, json, command.output);
  if (session.json()) {
    if (!command.output.folder.empty()) json["files"] = files;
    session.print_json(json);
  } else {
    session.print(circuit_text(circuits, static_cast<std::size_t>(command.top)) +
                  files_text(command.output, files));
  }
  // Only now, so that what needs no figures was written.
  if (!command.output.folder.empty()) check_figures(command.output.style);
}

}  // namespace

void add_circuit(Program& program) {
  const auto command = std::make_shared<CircuitCommand>();
  CLI::App& app =
      program.add({"circuit",
                   "Which heads, MLPs or edges a task needs, in models side by side.",
                   {"filigree circuit gpt2 --task ioi", "filigree circuit dense sparse --task copy",
                    "filigree circuit dense sparse --task ioi --parts edges",
                    "filigree circuit gpt2 --task greater-than --parts heads+mlps --select greedy",
                    "filigree circuit dense sparse --task ioi --parts edges --out circuits",
                    "filigree circuit gpt2 --task ioi --parts edges --method exact --state s.state",
                    "filigree circuit gpt2 --task my-task.jsonl --level 95 --top 20 --json"},
                   Computes::kOnRanks},
                  [command](Session& session) { run_circuit(*command, session); });
  app.add_option("MODEL", command->models,
                 "model folders or names; sizes are compared with the first")
      ->required();
  app.add_option("--task", command->selection.name, "name of a task (see task list) or JSONL file")
      ->required()
      ->type_name("TASK");
  add_task_options(app, command->selection);
  app.add_option("--parts", command->parts,
                 "heads, heads+mlps, edges (of the component graph) or attention-edges (cells of "
                 "the attention maps)")
      ->check(one_of_names(kParts))
      ->type_name("KIND")
      ->capture_default_str();
  app.add_option("--method", command->method,
                 "how parts are scored: exact (a run a part), attribution (one gradient; eap for "
                 "edges) or ig (integrated gradients; eap-ig); exact for heads, ig for edges, "
                 "attribution for attention edges")
      ->check(one_of_names(kMethods))
      ->type_name("NAME");
  app.add_option("--steps", command->steps, "steps of integrated gradients")
      ->check(whole_number(1, 1000))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--select", command->select,
                 "top-k (by score), greedy (heads: remove what is missed least; edges: walk back "
                 "from the logits) or greedy-add (heads: add what helps most)")
      ->check(one_of_names(kSelections))
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--candidates", command->candidates,
                 "parts that a greedy step tries, next by score; 0: all")
      ->check(whole_number(0, 1 << 20))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--replacement", command->replacement,
                 "what parts that are left out become: corrupt, zero, mean or mean-by-position")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--level", command->level, "share of the effect to explain, in percent")
      ->check(number_above(0, 100))
      ->type_name("PERCENT")
      ->default_str("90");
  app.add_option("--top", command->top, "parts listed for each model")
      ->check(whole_number(0, 1 << 20))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--state", command->state,
                 "file that keeps what is done, so that a stopped command goes on")
      ->type_name("FILE");
  app.add_option("--out", command->output.folder,
                 "folder for figures (curves, maps of the heads, drawing of the edges), Graphviz "
                 "files of edges, and JSON")
      ->type_name("DIR");
  add_figure_formats(app, command->output.formats);
  add_figure_options(app, command->output.style);
}

}  // namespace filigree::cli
