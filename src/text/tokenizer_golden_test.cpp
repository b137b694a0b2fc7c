// Token ids as Hugging Face's tokenizers gives them. The 8k vocabulary is in tests/golden; GPT-2's
// own is looked for beside the checkout and is not part of the repository.

#include <nlohmann/json.hpp>

#include "filigree/tokenizer.h"
#include "text/text_test_support.h"

namespace filigree {
namespace {

using nlohmann::json;

const std::filesystem::path kSmall = golden_folder() / "bpe-8k";
const std::filesystem::path kGpt2 = FILIGREE_SOURCE_DIR "/../shared/fixtures/gpt2-vocab";

void expect_all_cases(const Tokenizer& tokenizer, const std::filesystem::path& file,
                      std::size_t at_least, const EncodeOptions& options) {
  const json cases = json::parse(read_file(file));
  ASSERT_GE(cases.size(), at_least);
  for (const json& entry : cases) {
    const std::string text = entry.at("text").get<std::string>();
    const auto expected = entry.at("ids").get<std::vector<TokenId>>();
    EXPECT_EQ(tokenizer.encode(text, options), expected) << entry.at("text").dump();
    EXPECT_EQ(tokenizer.decode(expected), text) << entry.at("text").dump();
    StreamingDecoder decoder(tokenizer);
    std::string streamed;
    for (const TokenId id : expected) streamed += decoder.push(id);
    EXPECT_EQ(streamed + decoder.finish(), text) << entry.at("text").dump();
  }
}

TEST(TokenizerGolden, SmallVocabularyFromTokenizerJson) {
  const Tokenizer tokenizer = Tokenizer::from_folder(kSmall);
  EXPECT_EQ(tokenizer.vocab_size(), 8192u);
  EXPECT_EQ(tokenizer.eos_id(), 0);
  expect_all_cases(tokenizer, kSmall / "cases.json", 133, {});
}

TEST(TokenizerGolden, SmallVocabularyFromVocabAndMerges) {
  const Tokenizer tokenizer =
      Tokenizer::from_vocab_and_merges(kSmall / "vocab.json", kSmall / "merges.txt");
  EXPECT_EQ(tokenizer.vocab_size(), 8192u);
  EXPECT_EQ(tokenizer.eos_id(), 0);
  expect_all_cases(tokenizer, kSmall / "cases.json", 133, {});
}

TEST(TokenizerGolden, SavedFilesAreByteForByteThoseOfHuggingFace) {
  const auto folder = fresh_folder();
  Tokenizer::from_folder(kSmall).save(folder);
  for (const char* file : {"tokenizer.json", "vocab.json", "merges.txt"})
    EXPECT_TRUE(read_file(folder / file) == read_file(kSmall / file)) << file;
}

// These cases were made without special tokens: <|endoftext|> is spelled out.
TEST(TokenizerGolden, Gpt2Vocabulary) {
  if (!std::filesystem::exists(kGpt2))
    GTEST_SKIP() << "GPT-2's vocabulary is not at " << kGpt2.lexically_normal();
  const Tokenizer tokenizer = Tokenizer::from_folder(kGpt2);
  EXPECT_EQ(tokenizer.vocab_size(), 50257u);
  EXPECT_EQ(tokenizer.eos_id(), 50256);
  expect_all_cases(tokenizer, kGpt2 / "cases.json", 200, {.special_tokens = false});
  EXPECT_EQ(tokenizer.encode("Hello<|endoftext|> world"),
            (std::vector<TokenId>{15496, 50256, 995}));
}

// Those of other families: text -> ids with what belongs around it, ids_plain without, and back.
class FamilyTokenizers : public testing::TestWithParam<const char*> {};

TEST_P(FamilyTokenizers, GiveTheIdsOfTheTokenizersLibrary) {
  const std::filesystem::path folder = golden_folder() / GetParam();
  const Tokenizer tokenizer = Tokenizer::from_folder(folder);
  const json cases = json::parse(read_file(folder / "cases.json"));
  ASSERT_EQ(cases.size(), 239u);
  for (const json& entry : cases) {
    const std::string text = entry.at("text").get<std::string>();
    const auto plain = entry.at("ids_plain").get<std::vector<TokenId>>();
    EXPECT_EQ(tokenizer.encode(text), plain) << entry.at("text").dump();
    EXPECT_EQ(tokenizer.encode(text, {.add_template = true}),
              entry.at("ids").get<std::vector<TokenId>>())
        << entry.at("text").dump();
    const std::string decoded = entry.at("decoded").get<std::string>();
    EXPECT_EQ(tokenizer.decode(plain), decoded) << entry.at("text").dump();
    StreamingDecoder decoder(tokenizer);
    std::string streamed;
    for (const TokenId id : plain) streamed += decoder.push(id);
    streamed += decoder.finish();
    if (streamed != decoded) {
      EXPECT_EQ(streamed, " " + decoded) << entry.at("text").dump();
    }
  }
}

// What is saved is what was read.
TEST_P(FamilyTokenizers, AreSavedAsTheyWereRead) {
  const auto folder = fresh_folder();
  const Tokenizer tokenizer = Tokenizer::from_folder(golden_folder() / GetParam());
  tokenizer.save(folder);
  EXPECT_EQ(
      Tokenizer::from_folder(folder).encode("Hello  world 1234\n\n\u00e9", {.add_template = true}),
      tokenizer.encode("Hello  world 1234\n\n\u00e9", {.add_template = true}));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, FamilyTokenizers,
                         testing::Values("tokenizer-llama2", "tokenizer-llama3", "tokenizer-qwen2",
                                         "tokenizer-neox"),
                         [](const auto& fixture) { return std::string(fixture.param).substr(10); });

}  // namespace
}  // namespace filigree
