// filigree tokenize: text to tokens, tokens to text, and the training of tokenizers.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <memory>
#include <optional>

#include "apps/cli/commands.h"
#include "apps/cli/data/tokenizer_training.h"
#include "apps/cli/program/input.h"
#include "apps/cli/program/program.h"
#include "filigree/base/error.h"
#include "filigree/base/strings.h"
#include "filigree/base/utf8.h"

namespace filigree::cli {
namespace {

constexpr std::size_t kPrintAtOnce = std::size_t{1} << 16;

struct TokenizeOptions {
  std::string tokenizer;
  std::string text;
  std::string file;
  bool ids_only = false;
  bool decode = false;
  std::vector<std::string> ids;
  bool no_special = false;
  bool replace_invalid = false;
  TokenizerTraining training;
};

// "15496 995", "[15496, 995]" and the output of --ids.
std::vector<TokenId> parse_ids(const std::string& text) {
  constexpr const char* kSeparators = " \t\r\n,[]";
  std::vector<TokenId> ids;
  std::size_t begin = 0;
  while ((begin = text.find_first_not_of(kSeparators, begin)) != std::string::npos) {
    const std::size_t end = std::min(text.find_first_of(kSeparators, begin), text.size());
    TokenId id = 0;
    const auto [stopped, failure] = std::from_chars(text.data() + begin, text.data() + end, id);
    if (failure != std::errc() || stopped != text.data() + end || id < 0)
      fail("'{}' is not a token id; ids are whole numbers from 0",
           printable(std::string_view(text).substr(begin, end - begin)));
    ids.push_back(id);
    begin = end;
  }
  return ids;
}

// One line a token, its bytes counted in the text the tokens stand for.
class TokenList {
 public:
  TokenList(const Tokenizer& tokenizer, const std::vector<TokenId>& ids)
      : tokenizer_(tokenizer), ids_(ids) {
    for (const TokenId id : ids) bytes_ += tokenizer.token_bytes(id).size();
  }

  std::size_t bytes() const { return bytes_; }

  void print(const Session& session) const {
    const std::size_t id_width =
        std::max<std::size_t>(2, std::to_string(tokenizer_.vocab_size()).size());
    const std::size_t range_width = std::max<std::size_t>(5, 2 * digits(bytes_) + 1);
    std::string text = fmt::format("{:>{}}  {:>{}}  token\n{:->{}}  {:->{}}  -----\n", "id",
                                   id_width, "bytes", range_width, "", id_width, "", range_width);
    std::size_t begin = 0;
    for (const TokenId id : ids_) {
      const std::size_t end = begin + tokenizer_.token_bytes(id).size();
      text += fmt::format("{:>{}}  {:>{}}  {}\n", id, id_width, fmt::format("{}:{}", begin, end),
                          range_width, shown(id));
      begin = end;
      if (text.size() >= kPrintAtOnce) {
        session.print(text);
        text.clear();
        throw_if_interrupted();
      }
    }
    text +=
        fmt::format("\n{} tokens, {} bytes", with_thousands(ids_.size()), with_thousands(bytes_));
    if (!ids_.empty())
      text += fmt::format(", {:.2f} bytes a token",
                          static_cast<double>(bytes_) / static_cast<double>(ids_.size()));
    session.print(text + "\n");
  }

  Json as_json() const {
    Json list = Json::array();
    std::size_t begin = 0;
    for (const TokenId id : ids_) {
      const std::size_t end = begin + tokenizer_.token_bytes(id).size();
      list.push_back({{"id", id}, {"token", shown_text(id)}, {"begin", begin}, {"end", end}});
      begin = end;
    }
    return list;
  }

 private:
  static std::size_t digits(std::size_t number) { return std::to_string(number).size(); }
  std::string shown_text(TokenId id) const { return tokenizer_.token_text(id); }
  // Quotes show the spaces; a special token is set apart from the same characters as text.
  std::string shown(TokenId id) const {
    return tokenizer_.is_special(id) ? shown_text(id) : "\"" + shown_text(id) + "\"";
  }

  const Tokenizer& tokenizer_;
  const std::vector<TokenId>& ids_;
  std::size_t bytes_ = 0;
};

// The text that was given in one of three ways.
struct Source {
  std::string text;
  std::string name;
};

Source read_source(const TokenizeOptions& options, bool has_text) {
  if (has_text && !options.file.empty()) throw UsageError("give TEXT or --file, not both");
  if (has_text) return {options.text, "the text"};
  const std::string file = options.file.empty() ? "-" : options.file;
  return {read_text(file), source_name(file)};
}

void print_ids(const std::vector<TokenId>& ids, const Session& session) {
  session.print(fmt::format("{}\n", fmt::join(ids, " ")));
}

void run_decode(const TokenizeOptions& options, bool has_text, const Tokenizer& tokenizer,
                Session& session) {
  if (has_text)
    throw UsageError(fmt::format("unexpected argument '{}'; write the ids after --decode",
                                 printable(options.text)));
  std::string given = fmt::format("{}", fmt::join(options.ids, " "));
  if (given.empty()) given = read_text(options.file.empty() ? "-" : options.file);
  const std::vector<TokenId> ids = parse_ids(given);
  const std::string text = tokenizer.decode(ids);
  if (session.json()) {
    session.print_json({{"tokenizer", options.tokenizer},
                        {"text", replace_invalid_utf8(text)},
                        {"tokens", TokenList(tokenizer, ids).as_json()}});
    return;
  }
  // Exactly the bytes, so that encoding and decoding a file gives that file; a person at a
  // terminal wants the prompt on its own line.
  const bool needs_newline = ::isatty(STDOUT_FILENO) == 1 && !text.ends_with('\n');
  session.print(needs_newline ? text + "\n" : text);
}

void run_encode(const TokenizeOptions& options, bool has_text, const Tokenizer& tokenizer,
                Session& session) {
  const Source source = read_source(options, has_text);
  const std::vector<TokenId> ids = encode_text(
      tokenizer, source.text, source.name,
      {.special_tokens = !options.no_special, .replace_invalid_utf8 = options.replace_invalid},
      kReplaceInvalid);
  const TokenList list(tokenizer, ids);
  if (session.json()) {
    Json result = {{"tokenizer", options.tokenizer}, {"count", ids.size()}, {"ids", ids}};
    if (!options.ids_only) result["tokens"] = list.as_json();
    session.print_json(result);
  } else if (options.ids_only) {
    print_ids(ids, session);
  } else {
    list.print(session);
  }
}

void run_tokenize(const TokenizeOptions& options, bool has_text, Session& session) {
  if (!options.training.files.empty()) {
    if (!options.tokenizer.empty())
      throw UsageError(fmt::format("unexpected argument '{}'; --train takes its texts after it",
                                   printable(options.tokenizer)));
    train_tokenizer(options.training, session);
    return;
  }
  if (!options.training.out.empty()) throw UsageError("--out goes with --train FILE...");
  if (options.tokenizer.empty()) throw UsageError("MODEL is required");
  const Tokenizer tokenizer = open_tokenizer(options.tokenizer);
  if (options.decode)
    run_decode(options, has_text, tokenizer, session);
  else
    run_encode(options, has_text, tokenizer, session);
}

}  // namespace

void add_tokenize(Program& program) {
  const auto options = std::make_shared<TokenizeOptions>();
  const auto text = std::make_shared<CLI::Option*>();
  const auto decode = std::make_shared<CLI::Option*>();
  CLI::App& app =
      program.add({"tokenize",
                   "Show the tokens of a text, decode ids, train a tokenizer.",
                   {"filigree tokenize gpt2 \"Hello world\"",
                    "filigree tokenize gpt2 --file book.txt --ids > book.ids",
                    "filigree tokenize gpt2 --decode 15496 995",
                    "filigree tokenize --train a.txt b.txt --vocab 8192 --out my-tokenizer"}},
                  [=](Session& session) {
                    options->decode = (*decode)->count() > 0;
                    run_tokenize(*options, (*text)->count() > 0, session);
                  });
  app.add_option("MODEL", options->tokenizer,
                 "folder of a model or of a tokenizer, or a model's name");
  *text = app.add_option("TEXT", options->text, "text to cut; without it stdin is read");
  app.add_option("--file", options->file, "read the text, or the ids for --decode, from a file")
      ->type_name("FILE");
  app.add_flag("--ids", options->ids_only, "print only the ids, on one line");
  *decode = app.add_option("--decode", options->ids,
                           "print the text of these ids; without any they are read from stdin")
                ->expected(0, 1 << 20)
                ->type_name("ID");
  app.add_flag("--no-special", options->no_special,
               "take the names of special tokens in the text as ordinary text");
  app.add_flag("--replace-invalid", options->replace_invalid,
               "read invalid UTF-8 as U+FFFD instead of failing");
  add_training_options(app, options->training);
}

}  // namespace filigree::cli
