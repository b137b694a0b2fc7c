#include <fmt/format.h>

#include <algorithm>

#include "filigree/error.h"
#include "filigree/model_study.h"
#include "filigree/names.h"
#include "filigree/study.h"

namespace filigree::study {
namespace {

// Begins prompts that are ids. A control character that no text has use for, and that no terminal
// or shell passes on by accident.
constexpr char kIdMark = '\x1d';

bool is_id_prompt(std::string_view text) { return !text.empty() && text.front() == kIdMark; }

}  // namespace

std::string id_prompt(std::string_view ids) {
  std::string text;
  for (const TokenId id : parse_token_ids(ids))
    text += fmt::format("{}{}", text.empty() ? "" : ",", id);
  require(!text.empty(), "'{}' holds no token id", printable(ids, 40));
  return kIdMark + text;
}

std::string shown_prompt(std::string_view prompt) {
  return std::string(is_id_prompt(prompt) ? prompt.substr(1) : prompt);
}

std::vector<TokenId> encode_text(const Tokenizer& tokenizer, std::string_view text,
                                 const std::string& source, const EncodeOptions& options,
                                 std::string_view remedy) {
  try {
    return tokenizer.encode(text, options);
  } catch (const Error& error) {
    fail("{}: {}{}", source, error.what(), remedy);
  }
}

std::vector<TokenId> encode_prompt(const Tokenizer& tokenizer, std::string_view text,
                                   const std::string& source, const EncodeOptions& options,
                                   std::string_view remedy) {
  if (is_id_prompt(text)) return parse_token_ids(text.substr(1));
  std::vector<TokenId> ids = encode_text(tokenizer, text, source, options, remedy);
  const std::vector<TokenId>& begin = tokenizer.begin_ids();
  const bool there =
      ids.size() >= begin.size() && std::equal(begin.begin(), begin.end(), ids.begin());
  if (!ids.empty() && !there) ids.insert(ids.begin(), begin.begin(), begin.end());
  return ids;
}

std::vector<TokenId> encode_chat(const Tokenizer& tokenizer, std::string_view text,
                                 const std::string& source) {
  if (is_id_prompt(text))
    throw RequestError("a chat template takes a text; token ids are a prompt already");
  const ChatMessage message{"user", std::string(text)};
  try {
    return tokenizer.encode_chat(std::span(&message, 1));
  } catch (const Error& error) {
    fail("{}: {}", source, error.what());
  }
}

void require_causal(const LoadedModel& model, std::string_view what) {
  require(!model.config().bidirectional,
          "{} of causal attention, and that of '{}' is bidirectional; its maps are written with "
          "'attention --out'",
          what, printable(model.name()));
}

void check_ids(const std::vector<TokenId>& ids, std::int64_t vocabulary, const std::string& model) {
  for (const TokenId id : ids)
    if (id < 0 || id >= vocabulary)
      fail(
          "model '{}': there is no token {}; its tokens are 0 to {}, and a tokenizer that gives "
          "others "
          "belongs to another model",
          printable(model), id, vocabulary - 1);
}

}  // namespace filigree::study
