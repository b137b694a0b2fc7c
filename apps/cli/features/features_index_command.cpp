// filigree features index: when each feature is active, over any amount of text.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>

#include "apps/cli/features/feature_commands.h"
#include "apps/cli/program/choices.h"
#include "apps/cli/program/input.h"
#include "apps/cli/program/program.h"
#include "base/table.h"
#include "filigree/feature_study.h"
#include "filigree/names.h"
#include "study/output.h"

namespace filigree::cli {
namespace {

struct IndexCommand {
  std::string model, text, data, out, folder;
  DataSplit split = DataSplit::kHeldOut;
  study::FeatureLayout layout = study::FeatureLayout::kPacked;
  study::IndexRequest request;
};

std::string index_text(const study::IndexResult& result) {
  Table table({{"layer", Align::kRight},
               {"active at a token", Align::kRight},
               {"never active", Align::kRight}});
  for (const study::IndexedLayer& layer : result.layers)
    table.add({std::to_string(layer.layer), fmt::format("{:.1f}", layer.l0),
               fmt::format("{} of {}", layer.silent, result.facts.features)});
  return fmt::format("{} tokens of {}, windows of {}\n{}\n{}: {} in {}\n",
                     with_thousands(result.facts.tokens), printable(result.request.text),
                     result.facts.length, table.text(2), result.request.out.string(),
                     human_bytes(result.bytes), format_seconds(result.seconds));
}

void run_index(const IndexCommand& command, const Session& session) {
  if (command.text.empty() == command.data.empty())
    throw UsageError("give either --text FILE or --data SHARDS");
  study::IndexRequest request = command.request;
  request.out = command.out;
  if (command.data.empty()) {
    request.text = command.text;
    request.data = study::EvaluationText{read_text(command.text), source_name(command.text), false};
  } else {
    request.text = command.data;
    request.data = study::open_evaluation_shards(command.data, command.split);
  }
  const study::Context context = session.context();
  const study::LoadedModel model = std::move(study::load_models({command.model}, context).front());
  const std::unique_ptr<OutputFolder> folder =
      command.folder.empty() ? nullptr : study::open_output(command.folder, context);
  const study::IndexResult result = study::run(request, model, context);
  study::FeatureExport exported;
  if (!command.folder.empty())
    exported = study::export_features({.features = request.features,
                                       .index = request.out,
                                       .folder = command.folder,
                                       .held = folder.get(),
                                       .layout = command.layout},
                                      model, *study::open_features(request.features, model.model()),
                                      context);
  if (!session.json()) {
    std::string text = index_text(result);
    if (!command.folder.empty())
      text += fmt::format("{}: {} features, {}\n", printable(command.folder), exported.features,
                          human_bytes(exported.bytes));
    return session.print(text);
  }
  study::Json json = to_json(result);
  json["out"] = command.out;
  json["export"] = command.folder.empty() ? study::Json()
                                          : study::Json{{"folder", command.folder},
                                                        {"features", exported.features},
                                                        {"bytes", exported.bytes}};
  session.print_json(json);
}

}  // namespace

void add_features_index(Program& program) {
  const auto command = std::make_shared<IndexCommand>();
  CLI::App& app = program.add(
      {"features index",
       "When each feature is active: frequency, strength, examples of a text.",
       {"filigree features index gpt2 clt --text book.txt --out clt.index",
        "filigree features index gpt2 clt --data shards --max-tokens 10000000 --out clt.index",
        "filigree features index gpt2 clt --text book.txt --out clt.index --export pages"},
       Computes::kOnDevice,
       true},
      [command](Session& session) { run_index(*command, session); });
  app.add_option("MODEL", command->model, "model folder or name")->required();
  app.add_option("FEATURES", command->request.features, "folder or name of a transcoder")
      ->required();
  app.add_option("--text", command->text,
                 "UTF-8 text file, - for stdin; <|endoftext|> may separate documents")
      ->type_name("FILE");
  app.add_option("--data", command->data, "token shards instead, as filigree prepare writes them")
      ->type_name("SHARDS");
  add_choice(app, "--split", command->split, "part of the shards");
  app.add_option("--out", command->out, "file of the index")->required()->type_name("FILE");
  WindowOptions& windows = command->request.windows;
  app.add_option("--context", windows.length, "tokens a window (default the model's context)")
      ->check(whole_number(2, 1 << 30))
      ->type_name("N");
  app.add_option("--max-tokens", windows.max_tokens,
                 "stop after the window that reaches this many (default all)")
      ->check(whole_number(1, INT64_MAX))
      ->type_name("N");
  IndexOptions& options = command->request.options;
  app.add_option("--examples", options.top, "examples of the largest activations of a feature")
      ->check(whole_number(1, 1000))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--export", command->folder,
                 "also write every feature for circuit-tracer's and Neuronpedia's viewers")
      ->type_name("DIR");
  Knobs knobs = knobs_of(command->request);
  knobs.section("Export");
  knobs.choice(
      {.name = "export-as", .what = "a few files with index.json.gz, or a JSON file a feature"},
      command->layout);
  program.add_knobs(app, std::move(knobs));
}

}  // namespace filigree::cli
