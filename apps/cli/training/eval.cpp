// filigree eval: loss and open attention edges of models, on a text or on held-out token shards.
#include <CLI/CLI.hpp>

#include <memory>

#include "apps/cli/commands.h"
#include "apps/cli/program/choices.h"
#include "apps/cli/program/intervention_options.h"
#include "apps/cli/program/program.h"
#include "apps/cli/training/evaluation_data.h"

namespace filigree::cli {
namespace {

struct EvalOptions {
  std::vector<std::string> models;
  EvaluationDataOptions data;
  WindowOptions windows;
  bool by_layer = false, by_head = false;
  Interventions interventions;
};

Json eval_json(const EvalOptions& options, const study::EvaluationResult& result) {
  Json json;
  add_evaluation_data(json, options.data);
  json["stride"] = options.windows.stride > 0 ? Json(options.windows.stride) : Json();
  json["models"] = study::to_json(result.models);
  return json;
}

void run_eval(const EvalOptions& options, const Session& session) {
  const study::EvaluationRequest request{read_evaluation_data(options.data, session),
                                         options.windows, options.interventions};
  const study::Context context = session.context();
  const std::vector<study::LoadedModel> models = study::load_models(options.models, context);
  const study::EvaluationResult result = study::run(request, models, context);
  if (result.caution) session.note(*result.caution);
  if (session.json()) {
    session.print_json(eval_json(options, result));
    return;
  }
  std::string text = study::evaluation_table(result.models);
  if (options.by_layer) text += "\n" + study::layer_table(result.models);
  if (options.by_head) text += "\n" + study::head_tables(result.models);
  session.print(text);
}

}  // namespace

void add_eval(Program& program) {
  const auto options = std::make_shared<EvalOptions>();
  CLI::App& app = program.add({"eval",
                               "Loss, perplexity and open attention edges of models.",
                               {"filigree eval gpt2 --text held-out.txt",
                                "filigree eval dense sparse control --data shards --by-layer",
                                "filigree eval sparse --data shards --max-tokens 50000 --json",
                                "filigree eval gpt2 --text book.txt --length 512 --stride 256",
                                "filigree eval gpt2 --text held-out.txt --ablate L5H1,L7MLP"},
                               Computes::kOnRanks},
                              [options](Session& session) { run_eval(*options, session); });
  app.add_option("MODEL", options->models, "model folders or names")->required();
  add_evaluation_data(app, options->data);
  app.add_flag("--by-layer", options->by_layer, "also show the open edges of every layer");
  app.add_flag("--by-head", options->by_head, "also show the open edges of every head");
  WindowOptions& windows = options->windows;
  app.add_option("--length", windows.length, "tokens a window (default the model's context)")
      ->check(whole_number(1, 1 << 30))
      ->type_name("N");
  app.add_option("--stride", windows.stride,
                 "tokens from one window to the next; less than --length gives every token more "
                 "context, and only new tokens count (default --length)")
      ->check(whole_number(1, 1 << 30))
      ->type_name("N");
  app.add_option("--max-tokens", windows.max_tokens,
                 "stop after the window that reaches this many (default all)")
      ->check(whole_number(1, INT64_MAX))
      ->type_name("N");
  app.add_option("--batch", windows.batch, "windows computed at once (default about 1024 tokens)")
      ->check(whole_number(1, 1 << 20))
      ->type_name("N");
  add_intervention_options(app, options->interventions);
}

}  // namespace filigree::cli
