// filigree eval: loss and open attention edges of models, or how well features stand in for their
// MLPs, on a text or on held-out token shards.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "apps/cli/commands.h"
#include "apps/cli/program/figure_options.h"
#include "apps/cli/program/intervention_options.h"
#include "apps/cli/program/program.h"
#include "apps/cli/program/show_option.h"
#include "apps/cli/training/evaluation_data.h"
#include "filigree/evaluation_study.h"
#include "filigree/feature_study.h"
#include "filigree/names.h"

namespace filigree::cli {
namespace {

// A transcoder that lies beside its model, as MODEL-features.
constexpr const char* kBeside = "beside";
constexpr std::int64_t kFeatureTokens = 32768;  // unless --max-tokens says otherwise

struct EvalOptions {
  std::vector<std::string> models, features;
  EvaluationDataOptions data;
  WindowOptions windows;
  ShowOption show;
  Interventions interventions;
  std::string out;
  study::FigureStyle style;
};

Json eval_json(const EvalOptions& options, const study::EvaluationResult& result) {
  Json json;
  add_evaluation_data(json, options.data);
  json["stride"] = options.windows.stride > 0 ? Json(options.windows.stride) : Json();
  json["models"] = study::to_json(result.models);
  return json;
}

void evaluate_models(const EvalOptions& options, const Session& session) {
  if (!options.out.empty() || options.show.has("densities"))
    throw UsageError("--out and --show densities are of transcoders: give --features too");
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
  if (options.show.has("layers")) text += "\n" + study::layer_table(result.models);
  if (options.show.has("heads")) text += "\n" + study::head_tables(result.models);
  session.print(text);
}

std::string features_text(const EvalOptions& options,
                          const std::vector<study::EvaluatedFeatures>& results) {
  std::vector<study::NamedQuality> named;
  for (const study::EvaluatedFeatures& result : results)
    named.emplace_back(result.label, result.quality);
  std::string text = study::quality_table(named);
  for (const auto& [label, quality] : named) {
    if (options.show.has("layers"))
      text += fmt::format("\n{}\n{}", printable(label), study::layer_quality_table(quality));
    if (options.show.has("densities"))
      text += fmt::format("\n{}: how often features are active\n{}", printable(label),
                          study::density_text(quality));
  }
  return text;
}

void evaluate_features(const EvalOptions& options, const Session& session) {
  if (options.show.has("heads") || !options.interventions.empty() || options.windows.stride > 0)
    throw UsageError(
        "transcoders are evaluated without --show heads, a stride and changes of the model");
  study::check_figure_file(options.out);
  study::FeatureEvaluationRequest request{
      {}, read_evaluation_data(options.data, session), options.windows, options.show.has("layers")};
  if (options.features != std::vector<std::string>{kBeside}) request.features = options.features;
  if (request.windows.max_tokens == 0) request.windows.max_tokens = kFeatureTokens;
  const study::Context context = session.context();
  const std::vector<study::LoadedModel> models = study::load_models(options.models, context);
  const std::vector<study::EvaluatedFeatures> results = study::run(request, models, context);
  if (!options.out.empty()) study::save_quality_figure(results, options.out, options.style);
  if (!session.json()) return session.print(features_text(options, results));
  Json json;
  add_evaluation_data(json, options.data);
  json["models"] = study::to_json(results);
  json["out"] = out_json(options.out);
  session.print_json(json);
}

}  // namespace

void add_eval(Program& program) {
  const auto options = std::make_shared<EvalOptions>();
  CLI::App& app =
      program.add({"eval",
                   "Loss and open attention edges of models, or how good transcoders are.",
                   {"filigree eval gpt2 --text held-out.txt",
                    "filigree eval dense sparse control --data shards --show layers",
                    "filigree eval sparse --data shards --max-tokens 50000 --json",
                    "filigree eval gpt2 --text book.txt --context 512 --set stride=256",
                    "filigree eval gpt2 --text held-out.txt --ablate L5H1,L7MLP",
                    "filigree eval dense sparse --features beside --data shards --out quality.pdf"},
                   Computes::kOnRanks,
                   true},
                  [options](Session& session) {
                    if (options->features.empty())
                      evaluate_models(*options, session);
                    else
                      evaluate_features(*options, session);
                  });
  app.add_option("MODEL", options->models, "model folders or names")->required();
  app.add_option("--features", options->features,
                 "evaluate transcoders instead, folders or names, one for each model; beside takes "
                 "MODEL-features beside each model's folder")
      ->type_name("DIR");
  add_evaluation_data(app, options->data);
  options->show.add(app, {"layers", "heads", "densities"},
                    "also open edges of every layer or head; of transcoders each layer's quality, "
                    "or how many features are active how often");
  WindowOptions& windows = options->windows;
  app.add_option("--context", windows.length, "tokens a window (default the model's context)")
      ->check(whole_number(2, 1 << 30))
      ->type_name("N");
  app.add_option("--max-tokens", windows.max_tokens,
                 "stop after the window that reaches this many (default all; of transcoders 32768)")
      ->check(whole_number(1, INT64_MAX))
      ->type_name("N");
  app.add_option("--batch", windows.batch, "windows computed at once (default about 1024 tokens)")
      ->check(whole_number(1, 1 << 20))
      ->type_name("N");
  add_intervention_options(app, options->interventions);
  app.add_option("--out", options->out,
                 "file of the figure of transcoders' quality: .svg, .pdf or .png")
      ->check(figure_file())
      ->type_name("FILE");
  Knobs knobs = knobs_of(windows);
  knobs.add(knobs_of(options->style));
  program.add_knobs(app, std::move(knobs));
}

}  // namespace filigree::cli
