// What commands are given: model folders, tokenizers, texts. Every failure is an Error that names
// the path and says what would be right.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace filigree::cli {

// The folder of a model: `name` itself, or a model of that name in one of model_places(). Throws
// Error when there is none, or a file, and lists the places and what they have. Every command takes
// its models through this.
std::filesystem::path model_folder(const std::string& name);

// The tokenizer of a model's folder or name, or of a folder that holds only a tokenizer, or a
// tokenizer.json itself.
Tokenizer open_tokenizer(const std::string& name);

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

// The last part of each path, or the whole path where two would be called the same.
std::vector<std::string> short_names(const std::vector<std::string>& paths);

}  // namespace filigree::cli
