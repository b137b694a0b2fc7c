// Texts as tokens of a model, with messages that say whose text and whose model.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace filigree::study {

// encode() with `source` in front of what it says about bad text and `remedy` behind it.
std::vector<TokenId> encode_text(const Tokenizer& tokenizer, std::string_view text,
                                 const std::string& source, const EncodeOptions& options = {},
                                 std::string_view remedy = {});

// The same of a text that a model is to read from its beginning: behind the begin-of-text token
// that the tokenizer puts there, if it has one and the text does not begin with it. A text without
// tokens stays so.
std::vector<TokenId> encode_prompt(const Tokenizer& tokenizer, std::string_view text,
                                   const std::string& source, const EncodeOptions& options = {},
                                   std::string_view remedy = {});

// Throws Error when an id is beyond what the model has an embedding for.
void check_ids(const std::vector<TokenId>& ids, std::int64_t vocabulary, const std::string& model);

}  // namespace filigree::study
