// Conversations as the text that a model was trained on, by the template that came with its
// tokenizer (text/jinja).
#pragma once

#include <span>
#include <string>

#include "filigree/tokenizer.h"

namespace filigree {

// The text of a conversation, as transformers' apply_chat_template gives it. `tokens` begin and end
// texts; those that are not there are undefined in the template.
struct ChatTokens {
  std::optional<std::string> begin = {}, end = {}, unknown = {}, padding = {};
};
std::string chat_text(std::string_view chat_template, std::span<const ChatMessage> messages,
                      bool add_generation_prompt, const ChatTokens& tokens);

}  // namespace filigree
