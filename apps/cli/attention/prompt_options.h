// The options that say what prompts attention is looked at on.
#pragma once

#include <CLI/App.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "filigree/attention_study.h"

namespace filigree::cli {

struct PromptOptions {
  std::vector<std::string> texts;
  std::vector<std::string> ids;  // lists
  std::string file;              // one prompt a line
  study::ShardWindows shards;
  bool samples_given = false;
  std::int64_t length = 0;
  bool replace_invalid = false;
  bool chat = false;
};

// --prompt, --ids, --text, --data, --split, --samples, --context, --replace-invalid, --chat.
void add_prompt_options(CLI::App& app, PromptOptions& options);

// Reads the file. Throws UsageError for options that do not go together; no prompts at all are
// none.
study::PromptRequest prompt_request(const PromptOptions& options);

}  // namespace filigree::cli
