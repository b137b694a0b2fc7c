#include "hub/hub_name.h"

#include <gtest/gtest.h>

#include <string>

#include "support/errors.h"

namespace filigree::hub {
namespace {

TEST(HubName, HasRepositoryRevisionAndFile) {
  const HubName plain = parse_hub_name("roneneldan/TinyStories-33M");
  EXPECT_EQ(plain.repository, "roneneldan/TinyStories-33M");
  EXPECT_EQ(plain.revision, "main");
  EXPECT_EQ(plain.file, "");
  const HubName all = parse_hub_name("org/na.me_2@refs/pr/1:q4/model@1.gguf");
  EXPECT_EQ(all.repository, "org/na.me_2");
  EXPECT_EQ(all.revision, "refs/pr/1");
  EXPECT_EQ(all.file, "q4/model@1.gguf");
  EXPECT_EQ(parse_hub_name("gpt2@main").repository, "gpt2");
  for (const char* text :
       {"gpt2", "org/name", "org/name@v1.0", "org/name:a.gguf", "a/b@c:d/e.gguf"})
    EXPECT_EQ(parse_hub_name(text).text(), text);
}

TEST(HubName, IsNoWayOutOfTheCache) {
  const std::string long_part(97, 'a'), long_file(1025, 'a');
  for (const std::string& text : {std::string(""),
                                  std::string("/"),
                                  std::string("a/b/c"),
                                  std::string("../b"),
                                  std::string("a/.."),
                                  std::string("."),
                                  std::string(".."),
                                  std::string("./b"),
                                  std::string("a/"),
                                  std::string("/b"),
                                  std::string("a--b/c"),
                                  std::string("a/b--c"),
                                  std::string("a..b/c"),
                                  std::string("-a/b"),
                                  std::string("a/b-"),
                                  std::string("a/.b"),
                                  std::string("a/b."),
                                  std::string("a/b.git"),
                                  std::string("a b/c"),
                                  std::string("a/b\n"),
                                  std::string("a/b\\c"),
                                  std::string("a/\xC3\xA4"),
                                  std::string("a/b?x"),
                                  std::string("a/b#x"),
                                  std::string("a/b%2e"),
                                  std::string("a\0/b", 4),
                                  long_part,
                                  "a/" + long_part,
                                  std::string("a/b@"),
                                  std::string("a/b@../c"),
                                  std::string("a/b@/c"),
                                  std::string("a/b@c/"),
                                  std::string("a/b@c//d"),
                                  std::string("a/b@.c"),
                                  std::string("a/b@c/.d"),
                                  std::string("a/b@-c"),
                                  std::string("a/b@c d"),
                                  std::string("a/b@c..d"),
                                  std::string("a/b@c.lock"),
                                  std::string("a/b@c\n"),
                                  "a/b@" + std::string(201, 'a'),
                                  std::string("a/b:"),
                                  std::string("a/b:/c"),
                                  std::string("a/b:../c"),
                                  std::string("a/b:c/../d"),
                                  std::string("a/b:c/"),
                                  std::string("a/b:c//d"),
                                  std::string("a/b:."),
                                  std::string("a/b:c\x01"),
                                  std::string("a/b:c\\d"),
                                  std::string("a/b:\xFF"),
                                  "a/b:" + long_file,
                                  "a/b:" + std::string(256, 'a')}) {
    EXPECT_FALSE(hub_name_if_any(text)) << text;
    EXPECT_NE(error_of([&] { parse_hub_name(text); }).find("it is ORG/NAME"), std::string::npos)
        << text;
  }
}

TEST(HubName, CommitsAreFortyDigits) {
  EXPECT_TRUE(is_commit("0123456789abcdef0123456789abcdef01234567"));
  for (const char* text :
       {"", "main", "0123456789ABCDEF0123456789abcdef01234567",
        "0123456789abcdef0123456789abcdef0123456", "0123456789abcdef0123456789abcdef012345678"})
    EXPECT_FALSE(is_commit(text)) << text;
}

}  // namespace
}  // namespace filigree::hub
