#include "apps/cli/program/token_input.h"

#include <fmt/format.h>

#include <vector>

#include "filigree/base/error.h"
#include "filigree/base/strings.h"

namespace filigree::cli {

TokenId single_token(const Tokenizer& tokenizer, const std::string& text, const std::string& option,
                     const ModelConfig& config) {
  const std::vector<TokenId> ids = tokenizer.encode(text);
  if (ids.size() != 1) {
    std::string parts;
    for (const TokenId id : ids) parts += (parts.empty() ? "" : "|") + tokenizer.token_text(id);
    fail("{} '{}' is {} tokens ({}), not one; mind the space before a word: \" Mary\"", option,
         printable(text), ids.size(), parts);
  }
  require(ids[0] < config.vocabulary, "{} '{}' is token {}, beyond the model's vocabulary of {}",
          option, printable(text), ids[0], config.vocabulary);
  return ids[0];
}

std::string shown_token(const Tokenizer& tokenizer, TokenId id) {
  return tokenizer.has_token(id) ? tokenizer.token_text(id) : fmt::format("<{}>", id);
}

}  // namespace filigree::cli
