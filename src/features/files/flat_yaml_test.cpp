#include "features/files/flat_yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/errors.h"

namespace filigree {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

FlatYaml parse(std::string_view text) { return FlatYaml::parse(text, "config.yaml"); }

TEST(FlatYaml, ReadsWhatConfigurationsHave) {
  const FlatYaml yaml = parse(
      "---\n# of a set\n\nmodel_name: \"a \\\"b\\\" # c\"   # comment\n"
      "plain: google/gemma-2-2b # comment\nanchor: a#b\nsingle: 'it''s'\n'key': x\r\n"
      "nothing:\nnull_text: ~\n"
      "list:\n- hf://org/repo/file?revision=1\n- \"b\"  # second\n\n# between\n- c\n"
      "lines: |\n  one\n  two\n"
      "short: [a, 'b, c', d]\nlast: 12");
  EXPECT_EQ(yaml.text("model_name"), "a \"b\" # c");
  EXPECT_EQ(yaml.text("plain"), "google/gemma-2-2b");
  EXPECT_EQ(yaml.text("anchor"), "a#b");
  EXPECT_EQ(yaml.text("single"), "it's");
  EXPECT_EQ(yaml.text("key"), "x");
  EXPECT_EQ(yaml.text("lines"), "one\ntwo\n");
  EXPECT_EQ(yaml.text("last"), "12");
  EXPECT_FALSE(yaml.has("nothing"));
  EXPECT_FALSE(yaml.has("null_text"));
  EXPECT_EQ(yaml.text_or("nothing", "else"), "else");
  EXPECT_THAT(yaml.list("list"), ElementsAre("hf://org/repo/file?revision=1", "b", "c"));
  EXPECT_THAT(yaml.list("short"), ElementsAre("a", "b, c", "d"));
  EXPECT_THAT(error_of([&] { yaml.text("list"); }), HasSubstr("is a list"));
  EXPECT_THAT(error_of([&] { yaml.list("last"); }), HasSubstr("is a text"));
  EXPECT_THAT(error_of([&] { yaml.text("missing"); }), HasSubstr("'config.yaml' has no missing"));
}

TEST(FlatYaml, RefusesWhatConfigurationsDoNotHaveByItsLine) {
  for (const char* text :
       {"b:\n  c: 2", "a: 1\nb: &x y", "a: 1\nb: *x", "a: 1\nb: !t y", "a: 1\nb: {c: d}",
        "a: 1\nb: [c", "a: 1\nb: \"c", "a: 1\nb: 'c' d", "a: 1\na: 2", "a: 1\n- b", "a: 1\nb: c: d",
        "a: 1\nb: \"\\x\"", "l:\n- a: b", "l:\n-", "l:\n- # x", "a: 1\nb: [a b] c", "a: 1\n[b]"})
    EXPECT_THAT(error_of([&] { parse(text); }), HasSubstr("'config.yaml' line 2: ")) << text;
  EXPECT_THAT(error_of([] { parse("a: \xFF"); }), HasSubstr("not UTF-8"));
  EXPECT_THAT(error_of([] { parse(std::string(2 << 20, ' ')); }), HasSubstr("at most"));
}

TEST(FlatYaml, QuotesWhatItReadsBack) {
  const std::string nasty = "a: \"b\" \\ # \t\n'[{";
  EXPECT_EQ(parse("key: " + yaml_text(nasty)).text("key"), nasty);
}

}  // namespace
}  // namespace filigree
