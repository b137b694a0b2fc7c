// filigree circuit: which heads, MLPs or edges a task needs, in one model or several side by side.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>
#include <span>

#include "apps/cli/circuits/task_options.h"
#include "apps/cli/commands.h"
#include "apps/cli/program/choices.h"
#include "apps/cli/program/figure_options.h"
#include "apps/cli/program/program.h"
#include "filigree/names.h"
#include "study/circuits/circuit_files.h"

namespace filigree::cli {
namespace {

struct CircuitCommand {
  std::vector<std::string> models;
  study::CircuitRequest request;
  std::vector<study::Method> methods;  // none: what is usual for the parts
  std::int64_t top = 10;
  study::CircuitOutput output;
};

study::CircuitRequest request_of(const CircuitCommand& command) {
  study::CircuitRequest request = command.request;
  request.search.method =
      command.methods.empty() ? study::usual_method(request.search.parts) : command.methods[0];
  return request;
}

// One for each method.
std::vector<study::CircuitsOfKind> find_or_say(const study::CircuitRequest& request,
                                               const std::vector<study::Method>& methods,
                                               study::Models models,
                                               const study::Context& context) {
  if (!request.state.empty()) catch_termination();
  try {
    return study::find_circuits_by(methods, request, models, context);
  } catch (const study::Stopped&) {
    if (!request.state.empty())
      context.say(fmt::format("stopped; the same command goes on from '{}'",
                              printable(request.state.string())));
    throw;
  }
}

std::string files_text(const study::CircuitOutput& output, const std::vector<std::string>& files) {
  if (study::is_figure_file(output.folder))
    return files.empty() ? "\nno circuit to draw\n"
                         : fmt::format("\nfigure: {}\n", printable(output.folder.string()));
  if (files.empty()) return "";
  std::string text = fmt::format("\n{} file{} in {}\n", files.size(), files.size() == 1 ? "" : "s",
                                 printable(output.folder.string()));
  for (const std::string& file : files) text += "  " + file + "\n";
  return text;
}

void run_circuit(const CircuitCommand& command, Session& session) {
  const study::CircuitRequest request = request_of(command);
  study::CircuitOutput output = command.output;
  output.cells_of_prompt = static_cast<std::size_t>(command.top);
  const study::Context context = session.context();
  std::vector<study::Method> methods = command.methods;
  if (methods.empty()) methods.push_back(request.search.method);
  check_methods(request, methods);  // before the long work
  if (methods.size() > 1 && study::is_figure_file(output.folder))
    throw UsageError(fmt::format("--out {}: {} methods have a figure each; give a folder",
                                 printable(output.folder.string()), methods.size()));
  const std::vector<study::LoadedModel> models = study::load_models(command.models, context);
  const std::unique_ptr<OutputFolder> out =
      output.folder.empty() ? nullptr : prepare_output(output, context);
  const std::vector<study::CircuitsOfKind> found = find_or_say(request, methods, models, context);
  for (const study::CircuitsOfKind& circuits : found)
    for (const study::ModelCircuit& circuit : circuits)
      if (!circuit.carried()) session.set_exit_code(kOutOfReach);
  if (!session.writes()) return;
  const bool several = found.size() > 1;
  std::vector<std::string> files;
  if (!output.folder.empty())
    for (const study::CircuitsOfKind& circuits : found) {
      const std::vector<std::string> more = write_circuit_files(circuits, models, output, several);
      files.insert(files.end(), more.begin(), more.end());
    }
  const auto top = static_cast<std::size_t>(command.top);
  if (session.json()) {
    study::Json json = several ? methods_json(found, study::Scores::kEvery, top)
                               : to_json(found[0], study::Scores::kEvery, top);
    json["files"] = output.folder.empty() ? study::Json() : study::Json(files);
    session.print_json(json);
  } else {
    session.print((several ? study::methods_text(found, top) : text_of(found[0], top)) +
                  files_text(output, files));
  }
  // Only now, so that what needs no figures was written.
}

}  // namespace

void add_circuit(Program& program) {
  const auto command = std::make_shared<CircuitCommand>();
  CLI::App& app =
      program.add({"circuit",
                   "Which heads, MLPs or edges a task needs, in models side by side.",
                   {"filigree circuit gpt2 --task ioi", "filigree circuit dense sparse --task copy",
                    "filigree circuit dense sparse --task ioi --parts edges",
                    "filigree circuit gpt2 --task ioi --parts edges --method eap,eap-ig",
                    "filigree circuit gpt2 --task greater-than --parts heads+mlps --select greedy",
                    "filigree circuit dense sparse --task ioi --parts edges --out circuits",
                    "filigree circuit a b --task ioi --parts attention-edges --out ioi.svg",
                    "filigree circuit gpt2 --task ioi --parts edges --method exact --state s.state",
                    "filigree circuit gpt2 --task my-task.jsonl --level 0.95 --top 20 --json"},
                   Computes::kOnRanks,
                   true},
                  [command](Session& session) { run_circuit(*command, session); });
  app.add_option("MODEL", command->models,
                 "model folders or names; sizes are compared with the first")
      ->required();
  study::SearchOptions& search = command->request.search;
  app.add_option("--task", command->request.task.name,
                 "name of a task (see task list) or JSONL file")
      ->required()
      ->type_name("TASK");
  add_task_options(app, command->request.task);
  add_choice(app, "--parts", search.parts,
             "edges are those of the component graph, attention-edges cells of the attention maps");
  add_choices(app, "--method", command->methods,
              "how parts are scored: exact (one patched run for each part), attribution (one "
              "gradient; of edges this is edge attribution patching, eap) or ig (gradients "
              "averaged from the corrupt to the clean prompt; of edges eap-ig); several are "
              "compared (default exact for heads, ig for edges, attribution for attention edges)");
  add_choice(app, "--select", search.selection,
             "by score; greedy (of heads: remove what is missed least, of edges: walk back from "
             "the logits); or add the heads that help most");
  add_choice(app, "--replacement", search.replacement, "what parts that are left out become");
  app.add_option("--level", search.level, "share of a task's effect to explain")
      ->check(number_above(0, 1))
      ->type_name("SHARE")
      ->capture_default_str();
  app.add_option("--top", command->top,
                 "parts listed for each model; in JSON attention edges of each prompt")
      ->check(whole_number(0, 1 << 20))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--state", command->request.state,
                 "file that keeps what is done, so that a stopped command goes on")
      ->type_name("FILE");
  app.add_option("--out", command->output.folder,
                 "folder of figures (curves, maps of the heads, drawing of the edges), Graphviz "
                 "files of edges, and JSON; a name that ends in .svg, .pdf or .png is the file of "
                 "the drawing or the maps alone")
      ->type_name("DIR");
  add_figure_formats(app, command->output.formats);
  Knobs knobs = knobs_of(search);
  knobs.add(knobs_of(command->request.task));
  knobs.add(knobs_of(command->output.style));
  program.add_knobs(app, std::move(knobs));
}

}  // namespace filigree::cli
