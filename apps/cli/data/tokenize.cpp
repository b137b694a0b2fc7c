// filigree tokenize: text to tokens, tokens to text, and the training of tokenizers.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <optional>

#include "apps/cli/commands.h"
#include "apps/cli/data/tokenizer_options.h"
#include "apps/cli/program/input.h"
#include "apps/cli/program/program.h"
#include "base/table.h"
#include "base/utf8.h"
#include "filigree/model_study.h"
#include "filigree/names.h"

namespace filigree::cli {
namespace {

constexpr std::size_t kPrintAtOnce = std::size_t{1} << 16;

struct TokenizeOptions {
  std::string tokenizer;
  std::optional<std::string> prompt;
  std::string text;  // file
  bool ids_only = false;
  std::optional<std::vector<std::string>> decode;
  bool no_special = false;
  bool replace_invalid = false;
  study::TokenizerTrainingRequest training;
};

// One line a token, its bytes counted in the text the tokens stand for.
void print_tokens(const Tokenizer& tokenizer, const std::vector<TokenId>& ids,
                  const Session& session) {
  const std::size_t bytes = study::token_bytes(tokenizer, ids);
  const auto digits = [](std::size_t number) { return std::to_string(number).size(); };
  const std::size_t id_width = std::max<std::size_t>(2, digits(tokenizer.vocab_size()));
  const std::size_t range_width = std::max<std::size_t>(5, 2 * digits(bytes) + 1);
  std::string text = fmt::format("{:>{}}  {:>{}}  token\n{:->{}}  {:->{}}  -----\n", "id", id_width,
                                 "bytes", range_width, "", id_width, "", range_width);
  study::place_tokens(tokenizer, ids, [&](const study::PlacedToken& token) {
    // Quotes show the spaces; a special token is set apart from the same characters as text.
    text += fmt::format("{:>{}}  {:>{}}  {}\n", token.id, id_width,
                        fmt::format("{}:{}", token.begin, token.end), range_width,
                        token.special ? token.text : "\"" + token.text + "\"");
    if (text.size() < kPrintAtOnce) return;
    session.print(text);
    text.clear();
    throw_if_interrupted();
  });
  text += fmt::format("\n{} tokens, {} bytes", with_thousands(ids.size()), with_thousands(bytes));
  if (!ids.empty())
    text += fmt::format(", {:.2f} bytes a token",
                        static_cast<double>(bytes) / static_cast<double>(ids.size()));
  session.print(text + "\n");
}

void run_decode(const TokenizeOptions& options, const Tokenizer& tokenizer, Session& session) {
  if (options.prompt)
    throw UsageError(fmt::format("unexpected argument '{}'; write the ids after --decode",
                                 printable(*options.prompt)));
  std::string given = fmt::format("{}", fmt::join(*options.decode, " "));
  if (given.empty()) given = read_text(options.text.empty() ? "-" : options.text);
  const std::vector<TokenId> ids = study::parse_token_ids(given);
  const std::string text = tokenizer.decode(ids);
  if (session.json()) {
    session.print_json({{"tokenizer", options.tokenizer},
                        {"text", replace_invalid_utf8(text)},
                        {"tokens", study::tokens_json(tokenizer, ids)}});
    return;
  }
  // Exactly the bytes, so that encoding and decoding a file gives that file; a person at a
  // terminal wants the prompt on its own line.
  const bool needs_newline = ::isatty(STDOUT_FILENO) == 1 && !text.ends_with('\n');
  session.print_exactly(needs_newline ? text + "\n" : text);
}

void run_encode(const TokenizeOptions& options, const Tokenizer& tokenizer, Session& session) {
  if (options.prompt && !options.text.empty())
    throw UsageError("give PROMPT or --text FILE, not both");
  const std::string file = options.text.empty() ? "-" : options.text;
  const std::string text = options.prompt ? *options.prompt : read_text(file);
  const std::vector<TokenId> ids = encode_text(
      tokenizer, text, options.prompt ? "the prompt" : source_name(file),
      {.special_tokens = !options.no_special, .replace_invalid_utf8 = options.replace_invalid},
      kReplaceInvalid);
  if (session.json())
    session.print_json(
        {{"tokenizer", options.tokenizer},
         {"count", ids.size()},
         {"ids", ids},
         {"tokens", options.ids_only ? Json() : study::tokens_json(tokenizer, ids)}});
  else if (options.ids_only)
    session.print(fmt::format("{}\n", fmt::join(ids, " ")));
  else
    print_tokens(tokenizer, ids, session);
}

void run_training(const TokenizeOptions& options, const Session& session) {
  if (!options.tokenizer.empty())
    throw UsageError(fmt::format("unexpected argument '{}'; --train takes its texts after it",
                                 printable(options.tokenizer)));
  if (options.training.out.empty()) throw UsageError("--train needs --out DIR, where to write");
  const study::TrainedTokenizer result = study::run(options.training, {}, session.context());
  if (session.json()) return session.print_json(to_json(result));
  Table table({{""}, {""}});
  table.add({"tokenizer", result.out.string()});
  table.add({"vocabulary", fmt::format("{} tokens", with_thousands(result.vocabulary))});
  table.add({"learned from",
             fmt::format("{} in {}", human_bytes(result.bytes), format_seconds(result.seconds))});
  session.print(table.text());
}

void run_tokenize(const TokenizeOptions& options, Session& session) {
  if (!options.training.texts.empty()) return run_training(options, session);
  if (!options.training.out.empty()) throw UsageError("--out goes with --train FILE...");
  if (options.tokenizer.empty()) throw UsageError("MODEL is required");
  const Tokenizer tokenizer = open_tokenizer(options.tokenizer);
  if (options.decode)
    run_decode(options, tokenizer, session);
  else
    run_encode(options, tokenizer, session);
}

}  // namespace

void add_tokenize(Program& program) {
  const auto options = std::make_shared<TokenizeOptions>();
  CLI::App& app =
      program.add({"tokenize",
                   "Show the tokens of a text, decode ids, train a tokenizer.",
                   {"filigree tokenize gpt2 \"Hello world\"",
                    "filigree tokenize gpt2 --text book.txt --ids > book.ids",
                    "filigree tokenize gpt2 --decode 15496 995",
                    "filigree tokenize --train a.txt b.txt --vocab 8192 --out my-tokenizer"}},
                  [=](Session& session) { run_tokenize(*options, session); });
  app.add_option("MODEL", options->tokenizer,
                 "folder of a model or of a tokenizer, or a model's name");
  app.add_option("PROMPT", options->prompt, "text to cut; without it stdin is read");
  app.add_option("--text", options->text,
                 "read the text, or the ids for --decode, from a file; - is stdin")
      ->type_name("FILE");
  app.add_flag("--ids", options->ids_only, "print only the ids, on one line");
  app.add_option_function<std::vector<std::string>>(
         "--decode", [=](const std::vector<std::string>& ids) { options->decode = ids; },
         "print the text of these ids; without any they are read from stdin")
      ->expected(0, 1 << 20)
      ->check(checked_by("ids", [](const std::string& text) { study::parse_token_ids(text); }))
      ->type_name("ID");
  app.add_flag("--no-special", options->no_special,
               "take the names of special tokens in the text as ordinary text");
  app.add_flag("--replace-invalid", options->replace_invalid,
               "read invalid UTF-8 as U+FFFD instead of failing");
  add_training_options(app, options->training);
}

}  // namespace filigree::cli
