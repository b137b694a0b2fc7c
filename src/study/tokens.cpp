#include <fmt/format.h>

#include "filigree/error.h"
#include "filigree/names.h"
#include "filigree/study.h"

namespace filigree::study {

TokenId single_token(const LoadedModel& model, const std::string& text, const std::string& what) {
  const Tokenizer& tokenizer = model.tokenizer();
  const std::vector<TokenId> ids = tokenizer.encode(text);
  if (ids.size() != 1) {
    std::string parts;
    for (const TokenId id : ids) parts += (parts.empty() ? "" : "|") + tokenizer.token_text(id);
    fail("{} '{}' is {} tokens ({}), not one; mind the space before a word: \" Mary\"", what,
         printable(text), ids.size(), parts);
  }
  require(ids[0] < model.config().outputs(), "{} '{}' is token {}, beyond the model's {} logits",
          what, printable(text), ids[0], model.config().outputs());
  return ids[0];
}

std::vector<TokenId> prompt_tokens(const LoadedModel& model, const std::string& text, bool chat) {
  const ModelConfig& config = model.config();
  const std::vector<TokenId> ids = chat ? encode_chat(model.tokenizer(), text, "the prompt")
                                        : encode_prompt(model.tokenizer(), text, "the prompt");
  require(!ids.empty(), "the prompt is empty; it needs at least one token");
  require(static_cast<std::int64_t>(ids.size()) <= config.context,
          "the prompt has {} tokens, more than the context of {} of '{}'", ids.size(),
          config.context, printable(model.name()));
  check_ids(ids, config.vocabulary, model.name());
  return ids;
}

std::string shown_token(const Tokenizer& tokenizer, TokenId id) {
  return tokenizer.has_token(id) ? tokenizer.token_text(id) : fmt::format("<{}>", id);
}

void ShownTokens::add(const Tokenizer& tokenizer, TokenId id) {
  if (texts_.find(id) == texts_.end()) texts_.emplace(id, shown_token(tokenizer, id));
}

}  // namespace filigree::study
