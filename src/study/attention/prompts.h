// The prompts that attention is looked at on: texts, or windows of token shards.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "analyze/prompt.h"
#include "study/context.h"
#include "study/json.h"
#include "study/loaded_model.h"
#include "text/data_split.h"

namespace filigree::study {

struct TextPrompt {
  std::string text;
  std::string name;  // for messages: "prompt 2", "line 3 of 'prompts.txt'"
};

// "the prompt", or "prompt 1" and so on where there are several.
std::vector<TextPrompt> numbered_prompts(const std::vector<std::string>& texts);
// One a line; the last line may end with a newline or not. Throws Error when there is none.
// `source` is for messages: "'prompts.txt'", "standard input".
std::vector<TextPrompt> prompt_lines(const std::string& text, const std::string& source);

inline constexpr std::int64_t kPromptWindows = 16;
inline constexpr std::int64_t kPromptWindowLength = 256;

struct ShardWindows {
  std::string folder;
  DataSplit split = DataSplit::kHeldOut;
  std::int64_t samples = kPromptWindows;  // drawn by the seed
};

struct PromptRequest {
  std::variant<std::vector<TextPrompt>, ShardWindows> source = {};
  // Tokens of a window, and the most of a text, of which the rest is left out. 0: windows of
  // kPromptWindowLength where the context allows it, and whole texts.
  std::int64_t length = 0;
  bool replace_invalid_utf8 = false;  // of texts

  bool empty() const;
};

struct PromptSet {
  std::vector<Prompt> prompts;
  std::optional<Tokenizer> tokenizer;  // nothing when neither models nor shards have one
};

// The one tokenizer of models side by side. Throws Error when one has none or another.
const Tokenizer& common_tokenizer(std::span<const LoadedModel> models);

// Throws RequestError when there are no prompts, and Error for models whose tokenizers differ,
// prompts that are empty, not UTF-8 or too long for a model, and shards that do not fit the models.
PromptSet read_prompts(const PromptRequest& request, std::span<const LoadedModel> models,
                       const Context& context);

// How many there are, and their tokens unless those are too many to read.
Json to_json(const std::vector<Prompt>& prompts);

}  // namespace filigree::study
