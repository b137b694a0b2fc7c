#include "apps/cli/models/text_tokens.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "apps/cli/program/input.h"
#include "apps/cli/program/prompt_option.h"
#include "base/utf8.h"
#include "filigree/model_study.h"
#include "filigree/names.h"

namespace filigree::cli {
namespace {

constexpr std::size_t kPrintAtOnce = std::size_t{1} << 16;

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

void show_text(const TextTokens& options, const std::string& name, const Tokenizer& tokenizer,
               const Session& session) {
  if (options.prompt) throw UsageError("give --prompt TEXT or --ids, not both");
  if (options.ids != "-" && !options.text.empty())
    throw UsageError("--text FILE holds the ids for --ids -; leave one of the two out");
  const std::string given =
      options.ids == "-" ? read_text(options.text.empty() ? "-" : options.text) : options.ids;
  const std::vector<TokenId> ids = study::parse_token_ids(given);
  const std::string text = tokenizer.decode(ids);
  if (session.json()) {
    session.print_json({{"tokenizer", name},
                        {"text", replace_invalid_utf8(text)},
                        {"tokens", study::tokens_json(tokenizer, ids)}});
    return;
  }
  // Exactly the bytes, so that encoding and decoding a file gives that file; a person at a
  // terminal wants the prompt on its own line.
  const bool needs_newline = ::isatty(STDOUT_FILENO) == 1 && !text.ends_with('\n');
  session.print_exactly(needs_newline ? text + "\n" : text);
}

void show_tokens(const TextTokens& options, const std::string& name, const Tokenizer& tokenizer,
                 const Session& session) {
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
        {{"tokenizer", name},
         {"count", ids.size()},
         {"ids", ids},
         {"tokens", options.only_ids ? Json() : study::tokens_json(tokenizer, ids)}});
  else if (options.only_ids)
    session.print(fmt::format("{}\n", fmt::join(ids, " ")));
  else
    print_tokens(tokenizer, ids, session);
}

}  // namespace

void TextTokens::show(const std::string& name, const Session& session) const {
  const Tokenizer tokenizer = open_tokenizer(name);
  if (ids.empty())
    show_tokens(*this, name, tokenizer, session);
  else
    show_text(*this, name, tokenizer, session);
}

void TextTokens::add_options(CLI::App& app) {
  app.add_option("--prompt", prompt, "show the tokens of this text instead of the model")
      ->type_name("TEXT");
  app.add_option("--text", text,
                 "show the tokens of a file, - for stdin; or the file with the ids for --ids -")
      ->type_name("FILE");
  app.add_option("--ids", ids,
                 "print the text of these ids, 15496,995; - reads them from stdin or --text")
      ->check(ids_check())
      ->type_name("ID,...");
  app.add_flag("--replace-invalid", replace_invalid,
               "read invalid UTF-8 of a text as U+FFFD instead of failing");
}

void TextTokens::add_knobs(Knobs& knobs) {
  knobs.section("Text");
  knobs.flag(
      {.name = "special", .what = "take the names of special tokens in the text as those tokens"},
      special);
}

}  // namespace filigree::cli
