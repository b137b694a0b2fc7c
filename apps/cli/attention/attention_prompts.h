// The prompts that attention is looked at on: texts, a file of them, or windows of token shards.
#pragma once

#include <CLI/App.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "filigree/analyze/prompt.h"
#include "filigree/model/config.h"
#include "filigree/text/tokenizer.h"

namespace filigree::cli {

struct PromptOptions {
  std::vector<std::string> texts;
  std::string file;  // one prompt a line
  std::string data;  // token shards
  std::string split = "val";
  std::int64_t samples = 0;  // windows of the shards; 0: kDefaultSamples
  std::int64_t length = 0;   // of a window, and the most of a prompt; 0: see below
  bool replace_invalid = false;
};

inline constexpr std::int64_t kDefaultSamples = 16;
inline constexpr std::int64_t kDefaultLength = 256;  // of a window, where the context allows it

struct PromptModel {
  std::string name;
  ModelConfig config;
};

struct PromptSet {
  std::vector<Prompt> prompts;
  std::optional<Tokenizer> tokenizer;  // nothing when neither models nor shards have one
};

// Throws UsageError unless there is exactly one source, and Error for models whose tokenizers
// differ, prompts that are empty, not UTF-8 or too long for a model, and shards that do not fit the
// models.
PromptSet read_prompts(const PromptOptions& options, const std::vector<PromptModel>& models,
                       std::uint64_t seed);

// --prompt, --file, --data, --split, --samples, --length, --replace-invalid.
void add_prompt_options(CLI::App& app, PromptOptions& prompts);

}  // namespace filigree::cli
