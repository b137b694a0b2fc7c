// What commands are given: model folders, tokenizers, texts. Every failure is an Error that names
// the path and says what would be right.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "filigree/study/model_places.h"
#include "filigree/text/tokenizer.h"

namespace filigree::cli {

// All of a file, or of standard input for "-".
std::string read_text(const std::string& file);

// "standard input" or "'file'", for messages.
std::string source_name(const std::string& file);

// encode() with `source` in front of what it says about bad text and `remedy` behind it.
std::vector<TokenId> encode_text(const Tokenizer& tokenizer, std::string_view text,
                                 const std::string& source, const EncodeOptions& options = {},
                                 std::string_view remedy = {});

inline constexpr std::string_view kReplaceInvalid = "; --replace-invalid reads it as U+FFFD";

// Throws Error when an id is beyond what the model has an embedding for.
void check_ids(const std::vector<TokenId>& ids, std::int64_t vocabulary, const std::string& model);

// While commands are moved to studies, which have these (study/model_places.h).
using study::has_tokenizer;
using study::model_folder;
using study::open_tokenizer;
using study::short_names;

}  // namespace filigree::cli
