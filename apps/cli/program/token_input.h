// Tokens that users name, and how tokens are shown.
#pragma once

#include <string>

#include "filigree/model/config.h"
#include "filigree/text/tokenizer.h"

namespace filigree::cli {

// The token of a text such as " Mary". Throws Error naming `option` when the text is several tokens
// or one that the model does not have.
TokenId single_token(const Tokenizer& tokenizer, const std::string& text, const std::string& option,
                     const ModelConfig& config);

// " the", or "<50260>" for an id that the tokenizer does not know.
std::string shown_token(const Tokenizer& tokenizer, TokenId id);

}  // namespace filigree::cli
