// filigree eval: the loss of models on a text.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>

#include "apps/cli/commands.h"
#include "apps/cli/evaluation.h"
#include "apps/cli/input.h"
#include "apps/cli/program.h"
#include "apps/cli/stopwatch.h"
#include "apps/cli/table.h"
#include "base/error.h"
#include "base/strings.h"

namespace filigree::cli {
namespace {

struct EvalOptions {
  std::vector<std::string> models;
  std::string text;
  EvaluationOptions evaluation;
  bool replace_invalid = false;
};

struct EvalResult {
  std::string model;
  std::int64_t length = 0, stride = 0;
  LossTotal total;
  std::int64_t bytes = 0;
  double seconds = 0.0;

  double loss() const { return total.mean(); }
  double perplexity() const { return std::exp(loss()); }
  double bits_per_byte() const { return total.sum / std::log(2.0) / static_cast<double>(bytes); }
};

// The bytes of text that the targets stand for: all tokens but the first, which nothing predicts,
// and but the special ones, which mark where documents end and are no text.
std::int64_t predicted_bytes(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  std::int64_t bytes = 0;
  for (std::size_t i = 1; i < ids.size(); ++i)
    if (!tokenizer.is_special(ids[i]))
      bytes += static_cast<std::int64_t>(tokenizer.token_bytes(ids[i]).size());
  return bytes;
}

EvalResult evaluate_model(const std::string& name, const std::string& label,
                          const std::string& text, const EvalOptions& options,
                          const Session& session) {
  const Tokenizer tokenizer = open_tokenizer(model_folder(name).string());
  const std::string source = source_name(options.text);
  const std::vector<TokenId> ids = encode_text(
      tokenizer, text, source, {.replace_invalid_utf8 = options.replace_invalid}, kReplaceInvalid);
  require(ids.size() >= 2, "{} is a single token for '{}'; a loss needs at least two", source,
          printable(name));
  const std::unique_ptr<Model> model = load_model(name);
  check_ids(ids, model->config().vocabulary, name);

  EvalResult result;
  result.model = name;
  result.length =
      options.evaluation.length > 0 ? options.evaluation.length : model->config().context;
  result.stride = options.evaluation.stride > 0 ? options.evaluation.stride : result.length;
  result.bytes = predicted_bytes(tokenizer, ids);
  const Stopwatch watch;
  Progress progress(std::cerr,
                    session.progress(label, "tokens", static_cast<std::int64_t>(ids.size()) - 1));
  result.total = evaluate(*model, ids, options.evaluation, [&](const LossTotal& so_far) {
    progress.update(so_far.tokens, fmt::format("loss {:.4f}", so_far.mean()));
    throw_if_interrupted();
  });
  progress.finish();
  result.seconds = watch.seconds();
  return result;
}

Json as_json(const EvalOptions& options, const std::vector<EvalResult>& results) {
  Json list = Json::array();
  for (const EvalResult& result : results)
    list.push_back({{"model", result.model},
                    {"loss", result.loss()},
                    {"perplexity", result.perplexity()},
                    {"bits_per_byte", result.bits_per_byte()},
                    {"tokens", result.total.tokens},
                    {"bytes", result.bytes},
                    {"length", result.length},
                    {"stride", result.stride},
                    {"seconds", result.seconds}});
  return {{"text", options.text}, {"models", list}};
}

std::string as_table(const std::vector<EvalResult>& results,
                     const std::vector<std::string>& labels) {
  const bool several = results.size() > 1;
  std::vector<Table::Column> columns = {{"model"}, {"loss", Align::kRight}};
  if (several) columns.push_back({"change", Align::kRight});
  columns.insert(columns.end(), {{"perplexity", Align::kRight},
                                 {"bits/byte", Align::kRight},
                                 {"tokens", Align::kRight},
                                 {"tokens/s", Align::kRight}});
  Table table(columns);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const EvalResult& result = results[i];
    std::vector<std::string> row = {labels[i], fmt::format("{:.4f}", result.loss())};
    if (several)
      row.push_back(i == 0 ? "" : fmt::format("{:+.4f}", result.loss() - results[0].loss()));
    const auto tokens = static_cast<std::uint64_t>(result.total.tokens);
    row.insert(row.end(), {fmt::format("{:.4g}", result.perplexity()),
                           fmt::format("{:.4f}", result.bits_per_byte()), with_thousands(tokens),
                           fmt::format("{:.0f}", static_cast<double>(tokens) / result.seconds)});
    table.add(std::move(row));
  }
  return table.text();
}

void run_eval(const EvalOptions& options, Session& session) {
  const EvaluationOptions& evaluation = options.evaluation;
  if (evaluation.length > 0 && evaluation.stride > evaluation.length)
    throw UsageError(fmt::format("--stride {} is longer than --length {}, which would skip tokens",
                                 evaluation.stride, evaluation.length));
  for (const std::string& model : options.models) model_folder(model);  // before the long work
  const std::string text = read_text(options.text);
  require(!text.empty(), "{} is empty; there is nothing to predict", source_name(options.text));
  const std::vector<std::string> labels = short_names(options.models);
  std::vector<EvalResult> results;
  for (std::size_t i = 0; i < options.models.size(); ++i)
    results.push_back(evaluate_model(options.models[i], labels[i], text, options, session));
  if (std::any_of(results.begin(), results.end(), [&](const EvalResult& result) {
        return result.total.tokens != results[0].total.tokens;
      }))
    session.note("the models cut the text into different tokens: compare bits/byte, not loss");
  if (session.json())
    session.print_json(as_json(options, results));
  else
    session.print(as_table(results, labels));
}

}  // namespace

void add_eval(Program& program) {
  const auto options = std::make_shared<EvalOptions>();
  CLI::App& app = program.add({"eval",
                               "Loss, perplexity and bits per byte of models on a text.",
                               {"filigree eval gpt2 --text held-out.txt",
                                "filigree eval dense/ sparse/ --text held-out.txt --json",
                                "filigree eval gpt2 --text book.txt --length 512 --stride 256"}},
                              [options](Session& session) { run_eval(*options, session); });
  app.add_option("MODEL", options->models, "model folders")->required();
  app.add_option("--text", options->text,
                 "UTF-8 text file, - for stdin; <|endoftext|> may separate documents")
      ->required()
      ->type_name("FILE");
  EvaluationOptions& evaluation = options->evaluation;
  app.add_option("--length", evaluation.length, "tokens a window (default the model's context)")
      ->check(whole_number(1, 1 << 30))
      ->type_name("N");
  app.add_option("--stride", evaluation.stride,
                 "tokens from one window to the next; less than --length gives every token more "
                 "context, and only new tokens count (default --length)")
      ->check(whole_number(1, 1 << 30))
      ->type_name("N");
  app.add_option("--batch", evaluation.batch,
                 "windows computed at once (default about 1024 tokens)")
      ->check(whole_number(1, 1 << 20))
      ->type_name("N");
  app.add_flag("--replace-invalid", options->replace_invalid,
               "read invalid UTF-8 as U+FFFD instead of failing");
}

}  // namespace filigree::cli
