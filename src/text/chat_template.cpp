#include "text/chat_template.h"

#include "base/utf8.h"
#include "filigree/error.h"
#include "text/jinja/jinja.h"

namespace filigree {

std::string chat_text(std::string_view chat_template, std::span<const ChatMessage> messages,
                      bool add_generation_prompt, const ChatTokens& tokens) {
  using jinja::Value;
  Value::List list;
  for (const ChatMessage& message : messages) {
    require(is_valid_utf8(message.role) && is_valid_utf8(message.content),
            "chat: a message is not valid UTF-8");
    list.push_back(Value::of(
        Value::Object{{"role", Value::of(message.role)}, {"content", Value::of(message.content)}}));
  }
  Value::Object variables = {{"messages", Value::of(std::move(list))},
                             {"add_generation_prompt", Value::of(add_generation_prompt)},
                             {"tools", Value::none()},
                             {"documents", Value::none()}};
  const auto add = [&](const char* name, const std::optional<std::string>& token) {
    if (token) variables[name] = Value::of(*token);
  };
  add("bos_token", tokens.begin);
  add("eos_token", tokens.end);
  add("unk_token", tokens.unknown);
  add("pad_token", tokens.padding);
  return jinja::render(chat_template, variables);
}

}  // namespace filigree
