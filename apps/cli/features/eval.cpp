// filigree features eval: how well features stand in for the MLPs of their models.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>

#include "apps/cli/features/feature_commands.h"
#include "apps/cli/program/choices.h"
#include "apps/cli/program/figure_options.h"
#include "apps/cli/program/input.h"
#include "apps/cli/program/program.h"
#include "filigree/feature_study.h"
#include "filigree/names.h"

namespace filigree::cli {
namespace {

struct EvalOptions {
  std::vector<std::string> models, features;
  std::string text, data;
  DataSplit split = DataSplit::kHeldOut;
  WindowOptions windows = {.max_tokens = 32768};
  bool by_layer = false;
  bool densities = false;
  std::string out;
  study::FigureStyle style;
};

void run_eval(const EvalOptions& options, const Session& session) {
  if (options.text.empty() == options.data.empty())
    throw UsageError("give either --text FILE or --data SHARDS");
  study::check_figure_file(options.out);
  study::FeatureEvaluationRequest request{options.features, {}, options.windows, options.by_layer};
  if (options.data.empty())
    request.data = study::EvaluationText{read_text(options.text), source_name(options.text), false};
  else
    request.data = study::open_evaluation_shards(options.data, options.split);
  const study::Context context = session.context();
  const std::vector<study::LoadedModel> models = study::load_models(options.models, context);
  const std::vector<study::EvaluatedFeatures> results = study::run(request, models, context);
  if (!options.out.empty()) study::save_quality_figure(results, options.out, options.style);
  if (session.json()) {
    session.print_json(Json{{"text", options.data.empty() ? Json(options.text) : Json()},
                            {"data", options.data.empty() ? Json() : Json(options.data)},
                            {"models", study::to_json(results)},
                            {"out", out_json(options.out)}});
    return;
  }
  std::vector<study::NamedQuality> named;
  for (const study::EvaluatedFeatures& result : results)
    named.emplace_back(result.label, result.quality);
  std::string text = study::quality_table(named);
  for (const study::NamedQuality& one : named) {
    if (options.by_layer)
      text += fmt::format("\n{}\n{}", printable(one.first), study::layer_quality_table(one.second));
    if (options.densities)
      text += fmt::format("\n{}: how often features are active\n{}", printable(one.first),
                          study::density_text(one.second));
  }
  session.print(text);
}

}  // namespace

void add_features_eval(Program& program) {
  const auto options = std::make_shared<EvalOptions>();
  CLI::App& app = program.add(
      {"features eval",
       "How well features stand in for the MLPs of their models.",
       {"filigree features eval dense-12x12 sparse-12x12 --data shards",
        "filigree features eval dense sparse --features dense-features sparse-features --text "
        "held-out.txt --by-layer",
        "filigree features eval dense sparse --features dense-features sparse-features --data "
        "shards --by-layer --out quality.pdf --theme print",
        "filigree features eval gpt2 --features features --data shards --densities --json"},
       Computes::kOnDevice},
      [options](Session& session) { run_eval(*options, session); });
  app.add_option("MODEL", options->models, "model folders or names")->required();
  app.add_option("--features", options->features,
                 "transcoders, folders or names, one for each model (default MODEL-features beside "
                 "each model's folder)")
      ->type_name("DIR");
  app.add_option("--text", options->text,
                 "UTF-8 text file, - for stdin; <|endoftext|> may separate documents")
      ->type_name("FILE");
  app.add_option("--data", options->data, "token shards instead, as filigree prepare writes them")
      ->type_name("SHARDS");
  add_choice(app, "--split", options->split, "part of the shards");
  app.add_option("--max-tokens", options->windows.max_tokens,
                 "stop after the window that reaches this many; 0: never")
      ->check(whole_number(0, INT64_MAX))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--length", options->windows.length,
                 "tokens a window (default the model's context)")
      ->check(whole_number(2, 1 << 30))
      ->type_name("N");
  app.add_flag("--by-layer", options->by_layer,
               "also a line a layer, with what replacing that layer alone does");
  app.add_flag("--densities", options->densities, "also how many features are active how often");
  add_figure_file(app, options->out, options->style);
}

}  // namespace filigree::cli
