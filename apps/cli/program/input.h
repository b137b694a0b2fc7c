// What commands are given: model folders, tokenizers, texts. Every failure is an Error that names
// the path and says what would be right.
#pragma once

#include <CLI/App.hpp>

#include <string>
#include <string_view>

#include "filigree/study.h"
#include "filigree/tokenizer.h"

namespace filigree::cli {

// All of a file, or of standard input for "-".
std::string read_text(const std::string& file);

// "standard input" or "'file'", for messages.
std::string source_name(const std::string& file);

// --chat.
void add_chat_option(CLI::App& app, bool& chat);

inline constexpr std::string_view kReplaceInvalid = "; --replace-invalid reads it as U+FFFD";

// While commands are moved to studies, which have these (filigree/study.h).
using study::check_ids;
using study::encode_text;
using study::has_tokenizer;
using study::model_folder;
using study::open_tokenizer;
using study::short_names;

}  // namespace filigree::cli
