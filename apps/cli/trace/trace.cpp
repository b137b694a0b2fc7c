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
  study::TraceFiles out;
};

void check_out(const TraceCommand& command) {
  study::check_files(command.out);
  const bool graph = std::any_of(command.out.files.begin(), command.out.files.end(),
                                 [](const std::string& file) { return file.ends_with(".json"); });
  if (!graph && !(command.index.empty() && command.twin_index.empty()))
    throw UsageError("an index is for the features of a graph: --index goes with --out FILE.json");
}

// The dense one stands first, as everywhere.
std::vector<std::string> models_of(const TraceCommand& command) {
  if (command.twin.empty()) return {command.model};
  return {command.twin, command.model};
}

std::vector<study::TraceFeatures> features_of(const TraceCommand& command) {
  if (command.twin.empty()) return {{command.features, command.index}};
  // Names the option where there are none.
  return {
      {study::features_of_model(command.twin_features, command.twin, "--twin-features").string(),
       command.twin_index},
      {command.features, command.index}};
}

void run_on_task(const TraceCommand& command, const study::TraceRequest& request,
                 const Session& session) {
  if (!request.target.empty() || !request.feature.empty() || !command.out.files.empty())
    throw UsageError(
        "--task explains the task's answers and writes no files: it goes without "
        "--target, --feature and --out");
  const study::Context context = session.context();
  const study::TaskTraceResult result =
      study::run(study::TaskTraceRequest{command.task, request},
                 study::load_models(models_of(command), context), context);
  if (session.json()) return session.print_json(to_json(result));
  session.print(text_of(result));
}

void run_on_prompt(const TraceCommand& command, const study::TraceRequest& request,
                   const Session& session) {
  const study::Context context = session.context();
  const std::vector<study::LoadedModel> models = study::load_models(models_of(command), context);
  const study::TraceResult result = study::run(request, models, context);
  std::vector<std::string> written;
  if (session.writes()) written = write_files(result, command.out, context);
  if (!session.json()) return session.print(text_of(result));
  study::Json json = to_json(result);
  json["out"] = written.empty() ? study::Json() : study::Json(written);
  session.print_json(json);
}

void run_trace_command(const TraceCommand& command, const Session& session) {
  if (command.twin.empty() && !command.twin_features.empty())
    throw UsageError("--twin-features goes with --dense-twin");
  if (command.twin.empty() && !command.twin_index.empty())
    throw UsageError("--twin-index goes with --dense-twin");
  if (command.request.prompt.empty() == command.task.name.empty())
    throw UsageError("either --prompt or --task says what is read");
  check_out(command);
  study::TraceRequest request = command.request;
  request.features = features_of(command);
  request.end_of_text = command.task.end_of_text;
  if (command.task.name.empty()) return run_on_prompt(command, request, session);
  run_on_task(command, request, session);
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
  app.add_option("--validate", command->request.validated,
                 "ablate so many features, of every rank of influence, and compare with the graph")
      ->check(whole_number(0, 10000))
      ->type_name("N")
      ->capture_default_str();
  app.add_flag("--first-position", request.first_position,
               "also take features of the first token, which transcoders are not trained on");
  app.add_option("--out", command->out.files,
                 "file of the graph (.json for circuit-tracer and Neuronpedia, .dot, .npz) or of a "
                 "figure (.svg, .pdf, .png); may be given several times")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("FILE");
  add_choice(app, "--draw", command->out.drawing, "figure that is drawn");
  add_figure_options(app, command->out.style);
}

}  // namespace filigree::cli
