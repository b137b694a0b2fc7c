// Texts of models without a tokenizer: tokens by id or by name, with spaces or commas between them.
#pragma once

#include <string_view>
#include <vector>

#include "filigree/tokenizer.h"

namespace filigree {

// Throws Error naming the part that is neither the name nor the id of a token.
std::vector<TokenId> encode_names(const Tokenizer& tokenizer, std::string_view text);

}  // namespace filigree
