// Random text that is repeated: where induction heads (look for the token after the last time the
// current one was seen) and duplicate-token heads (look for that time itself) show themselves.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analyze/prompt.h"

namespace filigree {

struct RepeatedText {
  std::vector<Prompt> prompts;  // all of start + 2 * period tokens
  std::int64_t start = 0;       // tokens before the first block: 1 with a first token, else 0
  std::int64_t period = 0;
};

struct RepeatedTextOptions {
  std::int64_t period = 50;  // less where the context is too short for it
  std::size_t samples = 2;
  std::uint64_t seed = 0;
  std::optional<TokenId> first = {};  // an end-of-text token, say, which takes up the sink
};

// Tokens drawn evenly from `ids`, without doubles inside a block while there are enough of them.
// Throws Error when there are no ids; no prompts at all when the context is below 2 * 2 tokens.
RepeatedText make_repeated_text(std::span<const TokenId> ids, std::int64_t context,
                                const RepeatedTextOptions& options);

}  // namespace filigree
