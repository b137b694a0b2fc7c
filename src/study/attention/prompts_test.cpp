#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "filigree/attention_study.h"
#include "filigree/error.h"
#include "support/model_folder.h"
#include "text/shard_preparation.h"

namespace filigree::study {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class PromptsTest : public ::testing::Test {
 protected:
  PromptsTest() { models_.emplace_back(folder_.name(), "model"); }

  PromptSet read(const PromptRequest& request) const { return read_prompts(request, models_, {}); }
  PromptSet read(const std::vector<std::string>& texts, std::int64_t length = 0) const {
    return read(PromptRequest{numbered_prompts(texts), length});
  }

  const ModelFolder folder_;
  std::vector<LoadedModel> models_;
};

TEST_F(PromptsTest, LinesAreNumberedAndMayEndInAnyWay) {
  const std::vector<TextPrompt> lines = prompt_lines("one\r\n\ntwo", "'file'");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].text, "one");
  EXPECT_EQ(lines[1].text, "");
  EXPECT_EQ(lines[2].text, "two");
  EXPECT_EQ(lines[2].name, "line 3 of 'file'");
  EXPECT_EQ(prompt_lines("one\n", "'file'").size(), 1u);
  EXPECT_THAT([] { prompt_lines("", "'file'"); },
              ThrowsMessage<Error>("'file' is empty; write one prompt a line"));
  EXPECT_EQ(numbered_prompts({"a"})[0].name, "the prompt");
  EXPECT_EQ(numbered_prompts({"a", "b"})[1].name, "prompt 2");
}

TEST_F(PromptsTest, TextsAreTokensOfTheModels) {
  const PromptSet set = read({"The cat sat.", "One"});
  ASSERT_EQ(set.prompts.size(), 2u);
  EXPECT_EQ(set.prompts[0].ids, models_[0].tokenizer().encode("The cat sat."));
  EXPECT_EQ(set.prompts[0].tokens.size(), set.prompts[0].ids.size());
  EXPECT_EQ(set.prompts[0].tokens[0], "The");
  EXPECT_EQ(read({"The cat sat."}, 2).prompts[0].ids.size(), 2u);
  const Json json = to_json(set.prompts);
  EXPECT_EQ(json["count"], 2);
  EXPECT_EQ(json["list"][0]["ids"], set.prompts[0].ids);
  // Far too many to read are counted only.
  EXPECT_TRUE(to_json(std::vector<Prompt>(5000, set.prompts[1])).at("list").is_null());
}

TEST_F(PromptsTest, RefusesWhatDoesNotFit) {
  EXPECT_THROW(read(PromptRequest{}), RequestError);
  EXPECT_THAT([&] { read({"a", ""}); }, ThrowsMessage<Error>(HasSubstr("prompt 2 is empty")));
  EXPECT_THAT([&] { read({"\xFF"}); },
              ThrowsMessage<Error>(AllOf(HasSubstr("the prompt"), HasSubstr("U+FFFD"))));
  PromptRequest replaced{numbered_prompts({"\xFF"})};
  replaced.replace_invalid_utf8 = true;
  EXPECT_EQ(read(replaced).prompts.size(), 1u);
  std::string text;
  for (int i = 0; i < 200; ++i) text += "word ";
  EXPECT_THAT([&] { read({text}); },
              ThrowsMessage<Error>(AllOf(HasSubstr("more than the context of 64"),
                                         HasSubstr("take only its first 64 tokens"))));
  EXPECT_EQ(read({text}, 64).prompts[0].ids.size(), 64u);
  EXPECT_THROW(read({text}, 65), Error);
}

TEST_F(PromptsTest, ModelsMustAgreeOnTheTokens) {
  const TemporaryFolder scratch;
  save_model(*make_model(tiny_config(), 2), scratch / "other");
  std::ofstream(scratch / "text.txt") << std::string(2000, 'a') << " some other text";
  PreparationOptions options;
  options.texts = {scratch / "text.txt"};
  train_tokenizer_for(options, {.vocab_size = 270}).save(scratch / "other");
  models_.emplace_back((scratch / "other").string(), "other");
  EXPECT_THAT([&] { read({"a"}); }, ThrowsMessage<Error>(HasSubstr("different tokenizers")));
}

TEST_F(PromptsTest, WindowsOfShardsAreDrawnByTheSeed) {
  const TemporaryFolder scratch;
  {
    std::ofstream text(scratch / "text.txt");
    for (int i = 0; i < 60; ++i) text << fmt::format("Number {} of sixty.\n<|endoftext|>\n", i);
  }
  PreparationOptions options;
  options.texts = {scratch / "text.txt"};
  options.held_out_share = 0.5;
  prepare_shards(options, models_[0].tokenizer(), scratch / "shards");
  ShardWindows windows;
  windows.folder = (scratch / "shards").string();
  windows.samples = 3;
  const auto ids = [&](std::uint64_t seed) {
    std::vector<std::vector<TokenId>> drawn;
    for (const Prompt& prompt :
         read_prompts({windows, 20}, models_, Context{.seed = seed}).prompts) {
      EXPECT_EQ(prompt.tokens.size(), 20u);
      drawn.push_back(prompt.ids);
    }
    EXPECT_EQ(drawn.size(), 3u);
    return drawn;
  };
  EXPECT_EQ(ids(1), ids(1));
  EXPECT_NE(ids(1), ids(2));
  // Without a length the context, which is shorter than a usual window.
  EXPECT_EQ(read({windows}).prompts[0].ids.size(), 64u);
  EXPECT_THAT([&] { read({windows, 65}); }, ThrowsMessage<Error>(HasSubstr("context of 64")));
  windows.samples = 100000;
  EXPECT_THAT(
      [&] {
        read({windows, 20});
      },
      ThrowsMessage<Error>(
          AllOf(HasSubstr("100000 samples are more than the"), HasSubstr("split 'held-out'"))));
}

}  // namespace
}  // namespace filigree::study
