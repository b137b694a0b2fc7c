// filigree eval: loss and open attention edges of models, on a text or on held-out token shards.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "apps/cli/commands.h"
#include "apps/cli/data/shard_input.h"
#include "apps/cli/program/input.h"
#include "apps/cli/program/program.h"
#include "apps/cli/training/evaluation_report.h"
#include "apps/cli/training/text_evaluation.h"
#include "filigree/base/error.h"
#include "filigree/base/strings.h"

namespace filigree::cli {
namespace {

struct EvalOptions {
  std::vector<std::string> models;
  std::string text;
  std::string data;
  std::string split = "val";
  WindowOptions windows;
  bool replace_invalid = false;
  bool by_layer = false, by_head = false;
};

EvaluatedModel evaluate_on_shards(const std::string& name, const std::string& label,
                                  const TokenShards& shards, const EvalOptions& options,
                                  const Session& session) {
  check_shards_fit(shards.index(), options.data, model_folder(name),
                   read_model_config(model_folder(name)));
  const std::unique_ptr<Model> model =
      load_model(model_folder(name), {.placement = session.placement()});
  EvaluatedModel result = evaluate_with_bar(
      *model, shard_windows(shards.split(options.split), options.windows, model->config()), label,
      session);
  result.length = window_length(options.windows, model->config());
  return result;
}

std::vector<EvaluatedModel> evaluate_all(const EvalOptions& options, const Session& session) {
  for (const std::string& model : options.models) model_folder(model);  // before the long work
  const std::vector<std::string> labels = short_names(options.models);
  std::string text;
  std::optional<TokenShards> shards;
  if (options.data.empty()) {
    // Launchers give the standard input to rank 0 alone.
    const bool shared = options.text == "-";
    if (!shared || session.writes()) text = read_text(options.text);
    if (shared) text = session.ranks().broadcast(text);
    require(!text.empty(), "{} is empty; there is nothing to predict", source_name(options.text));
  } else {
    shards = TokenShards::open(options.data);
    require(shards->split(options.split).tokens() >= 2,
            "'{}' has no tokens in its split '{}'; there is nothing to predict",
            printable(options.data), printable(options.split));
  }
  std::vector<EvaluatedModel> results;
  for (std::size_t i = 0; i < options.models.size(); ++i) {
    results.push_back(
        shards ? evaluate_on_shards(options.models[i], labels[i], *shards, options, session)
               : evaluate_on_text(options.models[i], labels[i],
                                  {text, source_name(options.text), options.replace_invalid},
                                  options.windows, session));
    results.back().model = options.models[i];
  }
  return results;
}

void check_options(const EvalOptions& options) {
  if (options.text.empty() == options.data.empty())
    throw UsageError("give either --text FILE or --data SHARDS");
  const WindowOptions& windows = options.windows;
  if (windows.length > 0 && windows.stride > windows.length)
    throw UsageError(fmt::format("--stride {} is longer than --length {}, which would skip tokens",
                                 windows.stride, windows.length));
  if (!options.data.empty() && windows.stride > 0)
    throw UsageError("--stride goes with --text; the windows of shards do not overlap");
  if (!options.data.empty() && options.replace_invalid)
    throw UsageError("--replace-invalid goes with --text; shards hold tokens");
}

void add_notes(const std::vector<EvaluatedModel>& results, const Session& session) {
  const auto differ = [&](auto value) {
    return std::any_of(results.begin(), results.end(), [&](const EvaluatedModel& result) {
      return value(result) != value(results[0]);
    });
  };
  if (differ([](const EvaluatedModel& result) { return result.evaluation.total.tokens; }))
    session.note("the models cut the text into different tokens: compare bits/byte, not loss");
  else if (differ([](const EvaluatedModel& result) { return result.length; }))
    session.note("the models' contexts differ: compare with --length N, not more than the least");
}

void run_eval(const EvalOptions& options, const Session& session) {
  check_options(options);
  const std::vector<EvaluatedModel> results = evaluate_all(options, session);
  add_notes(results, session);
  if (session.json()) {
    Json json = options.data.empty() ? Json{{"text", options.text}}
                                     : Json{{"data", options.data}, {"split", options.split}};
    if (options.data.empty())
      json["stride"] = options.windows.stride > 0 ? Json(options.windows.stride) : Json();
    json["models"] = evaluation_json(results);
    session.print_json(json);
    return;
  }
  std::string text = evaluation_table(results);
  if (options.by_layer) text += "\n" + layer_table(results);
  if (options.by_head) text += "\n" + head_tables(results);
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
                                "filigree eval gpt2 --text book.txt --length 512 --stride 256"},
                               Computes::kOnRanks},
                              [options](Session& session) { run_eval(*options, session); });
  app.add_option("MODEL", options->models, "model folders or names")->required();
  app.add_option("--text", options->text,
                 "UTF-8 text file, - for stdin; <|endoftext|> may separate documents")
      ->type_name("FILE");
  app.add_option("--data", options->data, "token shards instead, as filigree prepare writes them")
      ->type_name("SHARDS");
  app.add_option("--split", options->split, "split of the shards")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_flag("--by-layer", options->by_layer, "also show the open edges of every layer");
  app.add_flag("--by-head", options->by_head, "also show the open edges of every head");
  WindowOptions& windows = options->windows;
  app.add_option("--length,--context", windows.length,
                 "tokens a window (default the model's context)")
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
  app.add_flag("--replace-invalid", options->replace_invalid,
               "read invalid UTF-8 as U+FFFD instead of failing");
}

}  // namespace filigree::cli
