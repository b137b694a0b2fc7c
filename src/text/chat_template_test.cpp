#include "text/chat_template.h"

#include <gtest/gtest.h>

#include "json/json.h"
#include "support/errors.h"
#include "text/jinja/jinja.h"
#include "text/text_test_support.h"

namespace filigree {
namespace {

using jinja::Value;
using nlohmann::json;

std::string rendered(const std::string& source) { return jinja::render(source, {}); }

std::string refusal(const std::string& source) {
  return error_of([&] { rendered(source); });
}

void expect_refused(const std::string& source, const std::string& part) {
  const std::string message = refusal(source);
  EXPECT_NE(message.find(part), std::string::npos) << source << ": " << message;
}

// tests/golden/chat/make_chat.py.
TEST(ChatTemplate, WritesConversationsAsTransformersDoes) {
  const json golden = read_json(golden_folder() / "chat" / "cases.json");
  ASSERT_GE(golden["templates"].size(), 12u);
  std::size_t refused = 0;
  for (const json& each : golden["cases"]) {
    const std::string source = golden["templates"][each["template"].get<std::string>()];
    std::vector<ChatMessage> messages;
    for (const json& message : golden["conversations"][each["messages"].get<std::string>()])
      messages.push_back({message["role"], message["content"]});
    const auto write = [&] {
      return chat_text(source, messages, each["add_generation_prompt"],
                       {.begin = "<s>", .end = "</s>"});
    };
    const std::string name = fmt::format("{} {}", each["template"].dump(), each["messages"].dump());
    if (each.contains("error")) {
      const std::string message = error_of(write);
      EXPECT_NE(message.find(each["error"].get<std::string>()), std::string::npos)
          << name << ": " << message;
      ++refused;
    } else {
      EXPECT_EQ(write(), each["text"].get<std::string>()) << name;
    }
  }
  EXPECT_EQ(golden["cases"].size(), 8 * golden["templates"].size());
  EXPECT_LT(refused, golden["cases"].size() / 4);
}

TEST(ChatTemplate, WhatIsNotSupportedIsRefusedByName) {
  expect_refused("{% macro x() %}{% endmacro %}", "the statement 'macro' is not supported");
  expect_refused("{{ 'a' | tojson }}", "the filter 'tojson' is not supported");
  expect_refused("{{ strftime_now('%d') }}", "the function 'strftime_now' is not supported");
  expect_refused("{{ 'a'.encode() }}", "the method 'encode' of a text is not supported");
  expect_refused("{{ 1 is divisibleby(1) }}", "the test 'divisibleby' is not supported");
  EXPECT_EQ(rendered("{% if false %}{{ 'a' | tojson }}{% endif %}x"), "x");  // not reached
}

TEST(ChatTemplate, MistakesNameTheirLine) {
  expect_refused("a\n{{ 'b }}", "line 2: a text has no end");
  expect_refused("{% if x %}", "'the end of the template' is not expected here");
  expect_refused("{{ x", "no '}}' ends what begins here");
  expect_refused("{{ (1 }}", "line 1");
  expect_refused("{% endif %}", "'endif' is not supported");
  expect_refused("{{ 1.5 }}", "no integer");
  expect_refused("{{ x.y }}", "'.y' of something undefined");
  expect_refused("{{ 1 + 'a' }}", "'+' is given a text, needs an integer");
  expect_refused("{{ raise_exception('no') }}", "it says: no");
  expect_refused("\xFF", "not valid UTF-8");
}

TEST(ChatTemplate, StepsOutputAndDepthAreBounded) {
  expect_refused("{% for i in range(1000000000) %}{% endfor %}", "steps");
  expect_refused(
      "{% set n = namespace(t='abcdefgh') %}{% for i in range(60) %}"
      "{% set n.t = n.t + n.t %}{% endfor %}",
      "chat template: ");
  expect_refused("{{ " + std::string(1000, '(') + "1" + std::string(1000, ')') + " }}",
                 "nested more than 64 deep");
  expect_refused("{{ " + std::string(5000, '-') + "1 }}", "nested more than 64 deep");
  std::string ifs;
  for (int i = 0; i < 100; ++i) ifs += "{% if true %}";
  expect_refused(ifs, "nested more than 64 deep");
  expect_refused(
      "{% set n = namespace(l=[]) %}{% for i in range(1000) %}{% set n.l = [n.l] %}"
      "{% endfor %}",
      "nested more than 64 deep");
  expect_refused("{% set n = namespace() %}{% set n.n = n %}", "a namespace inside another value");
  expect_refused(std::string(jinja::kMaxTemplateBytes + 1, 'a'), "the limit is");
  expect_refused("{{ 9223372036854775807 + 1 }}", "beyond 64 bits");
}

TEST(ChatTemplate, ComesFromTheConfigurationOrAFileBesideIt) {
  const auto folder = fresh_folder();
  const std::string tokenizer =
      R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"<s>":2},"merges":[]},)"
      R"("added_tokens":[{"id":2,"content":"<s>","special":true}],)"
      R"("pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false}})";
  write_file(folder / "tokenizer.json", tokenizer);
  const ChatMessage message{"user", "b"};
  const auto ids = [&] {
    return Tokenizer::from_folder(folder).encode_chat(std::span(&message, 1));
  };
  EXPECT_NE(error_of(ids).find("no chat template"), std::string::npos);
  write_file(folder / "tokenizer_config.json",
             R"({"bos_token":{"content":"<s>"},)"
             R"("chat_template":"{{ bos_token }}{{ messages[0].content }}"})");
  EXPECT_EQ(ids(), std::vector<TokenId>({2, 1}));
  write_file(folder / "chat_template.jinja", "a{{ messages[0].content }}\n");
  EXPECT_EQ(ids(), std::vector<TokenId>({0, 1}));
}

}  // namespace
}  // namespace filigree
