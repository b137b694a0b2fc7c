#include "apps/cli/training/evaluation_data.h"

#include "apps/cli/program/choices.h"
#include "apps/cli/program/input.h"
#include "apps/cli/program/program.h"

namespace filigree::cli {
namespace {

study::EvaluationText read_evaluation_text(const EvaluationDataOptions& options,
                                           const Session& session) {
  // Launchers give the standard input to rank 0 alone.
  const bool shared = options.text == "-";
  std::string text;
  if (!shared || session.writes()) text = read_text(options.text);
  if (shared) text = session.ranks().broadcast(text);
  return {std::move(text), source_name(options.text), options.replace_invalid};
}

}  // namespace

void add_evaluation_data(CLI::App& app, EvaluationDataOptions& options) {
  app.add_option("--text", options.text,
                 "UTF-8 text file, - for stdin; <|endoftext|> may separate documents")
      ->type_name("FILE");
  app.add_option("--data", options.data, "token shards instead, as filigree prepare writes them")
      ->type_name("SHARDS");
  add_choice(app, "--split", options.split, "part of the shards");
  app.add_flag("--replace-invalid", options.replace_invalid,
               "read invalid UTF-8 as U+FFFD instead of failing");
}

std::variant<study::EvaluationText, study::EvaluationShards> read_evaluation_data(
    const EvaluationDataOptions& options, const Session& session) {
  if (options.text.empty() == options.data.empty())
    throw UsageError("give either --text FILE or --data SHARDS");
  if (options.data.empty()) return read_evaluation_text(options, session);
  if (options.replace_invalid)
    throw UsageError("--replace-invalid goes with --text; shards hold tokens");
  return study::open_evaluation_shards(options.data, options.split);
}

void add_evaluation_data(Json& json, const EvaluationDataOptions& options) {
  const bool shards = !options.data.empty();
  json["text"] = shards ? Json() : Json(options.text);
  json["data"] = shards ? Json(options.data) : Json();
  json["split"] = shards ? Json(name_of(options.split)) : Json();
}

}  // namespace filigree::cli
