// filigree tokenize: text to tokens, tokens to text.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <optional>

#include "apps/cli/commands.h"
#include "apps/cli/program/input.h"
#include "apps/cli/program/program.h"
#include "apps/cli/program/prompt_option.h"
#include "apps/cli/program/show_option.h"
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
  ShowOption show;
  std::string ids;  // to decode; "-": those of the text
  bool special = true;
  bool replace_invalid = false;
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
  if (options.prompt) throw UsageError("give --prompt TEXT or --ids, not both");
  if (options.ids != "-" && !options.text.empty())
    throw UsageError("--text FILE holds the ids for --ids -; leave one of the two out");
  const std::string given =
      options.ids == "-" ? read_text(options.text.empty() ? "-" : options.text) : options.ids;
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
    throw UsageError("give --prompt TEXT or --text FILE, not both");
  const std::string file = options.text.empty() ? "-" : options.text;
  const std::string text = options.prompt ? *options.prompt : read_text(file);
  const std::vector<TokenId> ids = encode_text(
      tokenizer, text, options.prompt ? "the prompt" : source_name(file),
      {.special_tokens = options.special, .replace_invalid_utf8 = options.replace_invalid},
      kReplaceInvalid);
  if (session.json())
    session.print_json(
        {{"tokenizer", options.tokenizer},
         {"count", ids.size()},
         {"ids", ids},
         {"tokens", options.show.has("ids") ? Json() : study::tokens_json(tokenizer, ids)}});
  else if (options.show.has("ids"))
    session.print(fmt::format("{}\n", fmt::join(ids, " ")));
  else
    print_tokens(tokenizer, ids, session);
}

void run_tokenize(const TokenizeOptions& options, Session& session) {
  const Tokenizer tokenizer = open_tokenizer(options.tokenizer);
  if (options.ids.empty())
    run_encode(options, tokenizer, session);
  else
    run_decode(options, tokenizer, session);
}

}  // namespace

void add_tokenize(Program& program) {
  const auto options = std::make_shared<TokenizeOptions>();
  CLI::App& app = program.add(
      {"tokenize",
       "Show the tokens of a text, or the text of token ids.",
       {"filigree tokenize gpt2 --prompt \"Hello world\"",
        "filigree tokenize gpt2 --text book.txt --show ids > book.ids",
        "filigree tokenize gpt2 --ids 15496,995", "filigree tokenize gpt2 --ids - < book.ids"}},
      [=](Session& session) { run_tokenize(*options, session); });
  app.add_option("MODEL", options->tokenizer,
                 "folder of a model or of a tokenizer, or a model's name")
      ->required();
  app.add_option("--prompt", options->prompt, "text to cut (default what stdin has)")
      ->type_name("TEXT");
  app.add_option("--text", options->text, "read the text, or the ids for --ids -, from a file")
      ->type_name("FILE");
  options->show.add(app, {"ids"}, "print only the ids, on one line");
  app.add_option("--ids", options->ids,
                 "print the text of these ids, 15496,995; - reads them from stdin or --text")
      ->check(ids_check())
      ->type_name("ID,...");
  app.add_flag("--replace-invalid", options->replace_invalid,
               "read invalid UTF-8 as U+FFFD instead of failing");
  Knobs knobs;
  knobs.section("Text");
  knobs.flag(
      {.name = "special", .what = "take the names of special tokens in the text as those tokens"},
      options->special);
  program.add_knobs(app, std::move(knobs));
}

}  // namespace filigree::cli
