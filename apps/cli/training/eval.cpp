// filigree eval: loss and open attention edges of models, on a text or on held-out token shards.
#include <CLI/CLI.hpp>

#include <memory>

#include "apps/cli/commands.h"
#include "apps/cli/program/choices.h"
#include "apps/cli/program/input.h"
#include "apps/cli/program/intervention_options.h"
#include "apps/cli/program/program.h"
#include "apps/cli/training/evaluation_report.h"

namespace filigree::cli {
namespace {

struct EvalOptions {
  std::vector<std::string> models;
  std::string text;
  std::string data;
  DataSplit split = DataSplit::kHeldOut;
  WindowOptions windows;
  bool replace_invalid = false;
  bool by_layer = false, by_head = false;
  Interventions interventions;
};

void check_options(const EvalOptions& options) {
  if (options.text.empty() == options.data.empty())
    throw UsageError("give either --text FILE or --data SHARDS");
  if (!options.data.empty() && options.replace_invalid)
    throw UsageError("--replace-invalid goes with --text; shards hold tokens");
}

study::EvaluationText read_evaluation_text(const EvalOptions& options, const Session& session) {
  // Launchers give the standard input to rank 0 alone.
  const bool shared = options.text == "-";
  std::string text;
  if (!shared || session.writes()) text = read_text(options.text);
  if (shared) text = session.ranks().broadcast(text);
  return {std::move(text), source_name(options.text), options.replace_invalid};
}

Json eval_json(const EvalOptions& options, const study::EvaluationResult& result) {
  const auto given = [](const std::string& name, bool is) { return is ? Json(name) : Json(); };
  const bool shards = !options.data.empty();
  return {{"text", given(options.text, !shards)},
          {"data", given(options.data, shards)},
          {"split", given(std::string(name_of(options.split)), shards)},
          {"stride", options.windows.stride > 0 ? Json(options.windows.stride) : Json()},
          {"models", study::to_json(result.models)}};
}

void run_eval(const EvalOptions& options, const Session& session) {
  check_options(options);
  study::EvaluationRequest request{options.models, {}, options.windows, options.interventions};
  if (options.data.empty())
    request.data = read_evaluation_text(options, session);
  else
    request.data = study::open_evaluation_shards(options.data, options.split);
  const study::EvaluationResult result = study::run_evaluation(request, session.context());
  if (result.caution) session.note(*result.caution);
  if (session.json()) {
    session.print_json(eval_json(options, result));
    return;
  }
  std::string text = evaluation_table(result.models);
  if (options.by_layer) text += "\n" + layer_table(result.models);
  if (options.by_head) text += "\n" + head_tables(result.models);
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
  app.add_option("--text", options->text,
                 "UTF-8 text file, - for stdin; <|endoftext|> may separate documents")
      ->type_name("FILE");
  app.add_option("--data", options->data, "token shards instead, as filigree prepare writes them")
      ->type_name("SHARDS");
  add_choice(app, "--split", options->split, "part of the shards");
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
  app.add_flag("--replace-invalid", options->replace_invalid,
               "read invalid UTF-8 as U+FFFD instead of failing");
}

}  // namespace filigree::cli
