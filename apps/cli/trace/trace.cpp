// filigree trace: what a prompt's prediction comes from, through features and heads.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "apps/cli/circuits/task_options.h"
#include "apps/cli/commands.h"
#include "apps/cli/program/choices.h"
#include "apps/cli/program/figure_options.h"
#include "apps/cli/program/program.h"
#include "apps/cli/trace/trace_text.h"
#include "filigree/feature_study.h"
#include "filigree/features.h"
#include "filigree/names.h"
#include "filigree/study.h"
#include "filigree/trace_study.h"

namespace filigree::cli {
namespace {

struct TraceCommand {
  std::string model, features, index, twin, twin_features, twin_index;
  study::TraceRequest request;
  study::TaskSelection task;
  std::int64_t validated = 0;
  std::vector<std::string> out;
  study::TraceDrawing drawing = study::TraceDrawing::kHeads;
  study::FigureStyle style;
};

void check_out(const TraceCommand& command) {
  for (const std::string& file : command.out) {
    if (study::is_graph_file(file)) continue;
    if (!study::is_figure_file(file))
      throw UsageError(fmt::format("--out: '{}' must end in .json, .dot, .npz, .svg, .pdf or .png",
                                   printable(file)));
    study::check_figure_file(file);
  }
  const bool graph = std::any_of(command.out.begin(), command.out.end(),
                                 [](const std::string& file) { return file.ends_with(".json"); });
  if (!graph && !(command.index.empty() && command.twin_index.empty()))
    throw UsageError("an index is for the features of a graph: --index goes with --out FILE.json");
}

std::vector<std::string> write_files(const TraceCommand& command, const study::TraceResult& result,
                                     const std::vector<study::TracedThrough>& through,
                                     const study::Context& context) {
  std::vector<std::string> files;
  for (const std::string& file : command.out) {
    if (study::is_graph_file(file)) {
      const std::vector<std::string> more =
          study::write_graph_files(result, file, context, through);
      files.insert(files.end(), more.begin(), more.end());
    } else {
      study::save_trace_figure(result, command.drawing, file, command.style);
      files.push_back(file);
    }
  }
  return files;
}

study::Json out_list(const std::vector<std::string>& files) {
  return files.empty() ? study::Json() : study::Json(files);
}

void run_on_task(const TraceCommand& command, const std::vector<study::TracedThrough>& through,
                 const Session& session, const study::Context& context) {
  if (!command.request.target.empty() || !command.request.feature.empty() || !command.out.empty())
    throw UsageError(
        "--task explains the task's answers and writes no files: it goes without "
        "--target, --feature and --out");
  study::TaskTraceRequest request{command.task, command.request, command.validated};
  const study::TaskTraceResult result = study::trace_task(request, through, context);
  if (session.json()) return session.print_json(to_json(result));
  session.print(task_trace_text(result));
}

void run_trace_command(const TraceCommand& command, const Session& session) {
  if (command.twin.empty() && !command.twin_features.empty())
    throw UsageError("--twin-features goes with --dense-twin");
  if (command.twin.empty() && !command.twin_index.empty())
    throw UsageError("--twin-index goes with --dense-twin");
  if (command.request.prompt.empty() == command.task.name.empty())
    throw UsageError("either --prompt or --task says what is read");
  check_out(command);
  const study::Context context = session.context();
  // The dense one stands first, as everywhere.
  std::vector<std::string> names, files, indices;
  if (!command.twin.empty()) {
    names.push_back(command.twin);
    files.push_back(
        study::features_of_model(command.twin_features, command.twin, "--twin-features").string());
    indices.push_back(command.twin_index);
  }
  names.push_back(command.model);
  files.push_back(study::features_of_model(command.features, command.model).string());
  indices.push_back(command.index);
  const std::vector<study::LoadedModel> models = study::load_models(names, context);
  std::vector<std::unique_ptr<FeatureDictionary>> dictionaries;
  std::vector<study::TracedThrough> through;
  for (std::size_t m = 0; m < models.size(); ++m) {
    dictionaries.push_back(open_dictionary(files[m]));
    through.push_back({&models[m], dictionaries.back().get(), files[m], indices[m]});
    // Before the work: is it of these features?
    if (!indices[m].empty()) study::open_feature_index(indices[m], models[m], *dictionaries.back());
  }
  if (!command.task.name.empty()) return run_on_task(command, through, session, context);
  study::TraceRequest request = command.request;
  request.end_of_text = command.task.end_of_text;
  const study::TraceResult result = study::run_trace(request, through, context);
  std::vector<study::TraceValidation> validations;
  if (command.validated > 0)
    for (std::size_t m = 0; m < through.size(); ++m)
      validations.push_back(
          study::validate_trace(result.models[m], through[m], command.validated, context));
  const std::vector<std::string> written = session.writes()
                                               ? write_files(command, result, through, context)
                                               : std::vector<std::string>();
  if (!session.json()) return session.print(trace_text(result, validations));
  study::Json json = to_json(result);
  study::Json checks = study::Json::array();
  for (std::size_t m = 0; m < validations.size(); ++m)
    checks.push_back(to_json(validations[m], result.models[m]));
  json["validation"] = validations.empty() ? study::Json() : checks;
  json["out"] = out_list(written);
  session.print_json(json);
}

}  // namespace

void add_trace(Program& program) {
  const auto command = std::make_shared<TraceCommand>();
  CLI::App& app = program.add(
      {"trace",
       "What a prediction comes from: features, the heads between them, and why those look there.",
       {"filigree trace sparse-12x12 --prompt \"When John and Mary went to the store, John gave a "
        "drink to\"",
        "filigree trace gpt2 --features clt --prompt \"Paris is in\" --target \" France\" --out "
        "g.json",
        "filigree trace gpt2 --features clt --index clt.index --prompt \"Paris is in\" --out "
        "g.json",
        "filigree trace sparse-12x12 --dense-twin dense-12x12 --prompt \"one two three one two\" "
        "--out heads.svg",
        "filigree trace gpt2 --features clt --prompt \"Paris is in\" --draw graph --out graph.pdf",
        "filigree trace gpt2 --features clt --task ioi --prompts 16 --validate 20"},
       Computes::kOnDevice},
      [command](Session& session) { run_trace_command(*command, session); });
  study::TraceRequest& request = command->request;
  app.add_option("MODEL", command->model, "model folder or name")->required();
  app.add_option("--features", command->features,
                 "transcoder of the model: folder, file or name (default MODEL-features beside the "
                 "model's folder, as bundled models have it)")
      ->type_name("DIR");
  app.add_option("--prompt", request.prompt, "text to read")->type_name("TEXT");
  app.add_option("--task", command->task.name,
                 "instead of a prompt: name of a task (see task list) or JSONL file")
      ->type_name("TASK");
  add_task_options(app, command->task, false);
  app.add_option("--target", request.target,
                 "token to explain, with the space before it; of several the first (default the "
                 "likeliest next tokens)")
      ->type_name("TEXT");
  app.add_option("--against", request.against,
                 "explain the difference between the logits of --target and this token")
      ->type_name("TEXT");
  app.add_option("--feature", request.feature, "explain a feature instead of a token: L3F17@5")
      ->type_name("TEXT");
  app.add_option("--dense-twin", command->twin, "model to trace beside it")->type_name("MODEL");
  app.add_option("--twin-features", command->twin_features, "transcoder of that model, likewise")
      ->type_name("DIR");
  app.add_option("--index", command->index,
                 "what features index wrote: a graph (--out FILE.json) then comes with what each "
                 "of its features is")
      ->type_name("FILE");
  app.add_option("--twin-index", command->twin_index, "the same of --twin-features")
      ->type_name("FILE");
  app.add_option("--key", request.key, "position that is read, of the pair of tokens looked at")
      ->check(whole_number(0, 1000000))
      ->type_name("N");
  app.add_option("--query", request.query,
                 "position that reads (default the pair that brings most to the prediction)")
      ->check(whole_number(0, 1000000))
      ->type_name("N");
  app.add_option("--max-features", request.max_features,
                 "feature nodes at most, the most influential first")
      ->check(whole_number(1, 1000000))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--node-share", request.node_share, "share of influence that kept nodes have")
      ->check(number_above(0, 1))
      ->type_name("SHARE")
      ->capture_default_str();
  app.add_option("--edge-share", request.edge_share, "the same of edges between them")
      ->check(number_above(0, 1))
      ->type_name("SHARE")
      ->capture_default_str();
  app.add_option("--validate", command->validated,
                 "ablate so many features, of every rank of influence, and compare with the graph")
      ->check(whole_number(0, 10000))
      ->type_name("N")
      ->capture_default_str();
  app.add_flag("--first-position", request.first_position,
               "also take features of the first token, which transcoders are not trained on");
  app.add_option("--out", command->out,
                 "file of the graph (.json for circuit-tracer and Neuronpedia, .dot, .npz) or of a "
                 "figure (.svg, .pdf, .png); may be given several times")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("FILE");
  add_choice(app, "--draw", command->drawing, "figure that is drawn");
  add_figure_options(app, command->style);
}

}  // namespace filigree::cli
