// Tokens with their places in the text that they stand for.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "study/json.h"
#include "text/tokenizer.h"

namespace filigree::study {

struct PlacedToken {
  TokenId id = 0;
  std::string text;                // as tables show it
  bool special = false;            // not made of the characters that it is shown as
  std::size_t begin = 0, end = 0;  // bytes
};

// One after the other, since a text may have more tokens than anybody wants in memory.
void place_tokens(const Tokenizer& tokenizer, const std::vector<TokenId>& ids,
                  const std::function<void(const PlacedToken&)>& take);

// Bytes of the text that the tokens stand for.
std::size_t token_bytes(const Tokenizer& tokenizer, const std::vector<TokenId>& ids);

// "15496 995", "[15496, 995]": whole numbers with spaces, commas, brackets and line breaks between
// them. Throws Error.
std::vector<TokenId> parse_token_ids(std::string_view text);

// [{"id", "token", "begin", "end"}, ...].
Json tokens_json(const Tokenizer& tokenizer, const std::vector<TokenId>& ids);

}  // namespace filigree::study
