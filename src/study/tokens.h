// Tokens that users name, prompts as a model takes them, and how tokens are shown.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "study/loaded_model.h"

namespace filigree::study {

// The token of a text such as " Mary". Throws Error, with `what` for its name, when the text is
// several tokens or one that the model does not have.
TokenId single_token(const LoadedModel& model, const std::string& text, const std::string& what);

// The tokens of a prompt. Throws Error for one that is empty, longer than the model's context or
// not UTF-8, and where the tokenizer belongs to another model.
std::vector<TokenId> prompt_tokens(const LoadedModel& model, const std::string& text);

// " the", or "<50260>" for an id that the tokenizer does not know.
std::string shown_token(const Tokenizer& tokenizer, TokenId id);

// The shown tokens of a result, so that it can be read without the tokenizer.
class ShownTokens {
 public:
  void add(const Tokenizer& tokenizer, TokenId id);
  // Of one that was added.
  const std::string& operator[](TokenId id) const { return texts_.at(id); }

 private:
  std::map<TokenId, std::string> texts_;
};

}  // namespace filigree::study
