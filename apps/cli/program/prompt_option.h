// A prompt on the command line: a text, or the ids of its tokens.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Validators.hpp>

#include <optional>
#include <string>
#include <vector>

#include "filigree/attention_study.h"

namespace filigree::cli {

// --prompt TEXT and --ids ID,..., one of them, into `prompt` as studies take it (study::id_prompt).
void add_prompt_option(CLI::App& app, std::string& prompt, const char* what);
void add_prompt_option(CLI::App& app, std::optional<std::string>& prompt, const char* what);

// --prompts-file FILE, and the prompts in it: one a line, or in .jsonl files a JSON object a line,
// {"prompt": "..."} or {"ids": [3, 17, 5]}.
void add_prompts_file_option(CLI::App& app, std::string& file);
std::vector<study::TextPrompt> read_prompts_file(const std::string& file);

// The text of ids as they are written after --ids. Throws UsageError.
std::string prompt_of_ids(const std::string& list);

// Of every option --ids: a list of ids, or - where a command reads them from elsewhere.
CLI::Validator ids_check();

inline constexpr const char* kIdsHelp = "token ids in the place of a text: 3,17,5";

}  // namespace filigree::cli
