#include "filigree/tokenizer.h"

#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include <csignal>
#include <thread>

#include "text/text_test_support.h"

namespace filigree {
namespace {

using Ids = std::vector<TokenId>;

TokenizerSpec small_spec() {
  TokenizerSpec spec = spec_with_rules({{"Ġ", "a"}, {"b", "c"}, {"Ã", "©"}});
  spec.vocabulary.push_back({std::string(kEndOfText), 259});
  spec.added_tokens.push_back({.content = std::string(kEndOfText), .id = 259});
  return spec;
}

TEST(Tokenizer, EncodesAndDecodes) {
  const Tokenizer tokenizer(small_spec());
  const Ids ids = tokenizer.encode("a a bc<|endoftext|>\u00e9");
  EXPECT_EQ(ids, (Ids{64, 256, 220, 257, 259, 258}));
  EXPECT_EQ(tokenizer.decode(ids), "a a bc<|endoftext|>\u00e9");
  EXPECT_EQ(tokenizer.decode(ids, {.skip_special_tokens = true}), "a a bc\u00e9");
  EXPECT_EQ(tokenizer.encode(""), Ids{});
  EXPECT_EQ(tokenizer.decode({}), "");
}

TEST(Tokenizer, SpecialTokensCanBeOrdinaryText) {
  const Tokenizer tokenizer(small_spec());
  const Ids ids = tokenizer.encode("<|endoftext|>", {.special_tokens = false});
  EXPECT_EQ(ids.size(), 13u);
  EXPECT_EQ(tokenizer.decode(ids), "<|endoftext|>");
}

TEST(Tokenizer, PrefixSpaceComesBeforeEveryPieceOfText) {
  TokenizerSpec spec = small_spec();
  spec.add_prefix_space = true;
  const Tokenizer tokenizer(spec);
  EXPECT_EQ(tokenizer.encode("a"), (Ids{256}));
  EXPECT_EQ(tokenizer.encode(" a"), (Ids{256}));
  EXPECT_EQ(tokenizer.encode("\na"), (Ids{220, 198, 64}));
  EXPECT_EQ(tokenizer.encode("a<|endoftext|>a"), (Ids{256, 259, 256}));
  EXPECT_EQ(tokenizer.encode(""), Ids{});
}

TEST(Tokenizer, WithoutThePatternATextIsOneWord) {
  TokenizerSpec spec = spec_with_rules({{"a", "!"}});
  EXPECT_EQ(Tokenizer(spec).encode("a!").size(), 2u);
  spec.use_pattern = false;
  EXPECT_EQ(Tokenizer(spec).encode("a!").size(), 1u);
}

TEST(Tokenizer, InvalidUtf8IsAnErrorOrReplaced) {
  const Tokenizer tokenizer(small_spec());
  EXPECT_ERROR(tokenizer.encode("abc\xFF"
                                "d"),
               "encode: invalid UTF-8 at byte 3 of 5 (0xFF)");
  EXPECT_ERROR(tokenizer.encode("\xE6\x97"), "invalid UTF-8 at byte 0 of 2");
  const Ids ids = tokenizer.encode(
      "a\xFF"
      "b",
      {.replace_invalid_utf8 = true});
  EXPECT_EQ(tokenizer.decode(ids), "a\uFFFDb");
  EXPECT_EQ(ids, tokenizer.encode("a\uFFFDb"));
}

// Long texts go through a memory of words, short ones do not.
TEST(Tokenizer, LongTextsEncodeAsTheirWordsDo) {
  const Tokenizer tokenizer(small_spec());
  std::string text;
  Ids expected;
  for (int i = 0; text.size() < 50000; ++i) {
    const std::string word = " a" + std::string(static_cast<std::size_t>(i % 97), 'b') + "c";
    text += word;
    for (const TokenId id : tokenizer.encode(word)) expected.push_back(id);
  }
  EXPECT_EQ(tokenizer.encode(text), expected);
}

TEST(Tokenizer, MoreWordsThanAreRemembered) {
  const Tokenizer tokenizer(small_spec());
  std::string text;
  for (int i = 0; i < 200000; ++i) text += fmt::format(" {}", i);
  text += text;
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
}

TEST(Tokenizer, MegabytesOfOneCharacter) {
  const Tokenizer tokenizer(small_spec());
  for (const char* unit : {"x", " ", "\n", "\u00e9"}) {
    std::string text;
    for (int i = 0; i < (2 << 20); ++i) text += unit;
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  }
}

TEST(Tokenizer, ThreadsShareOne) {
  const Tokenizer tokenizer(small_spec());
  std::string text;
  for (int i = 0; i < 3000; ++i) text += " a bc" + std::to_string(i);
  const Ids expected = tokenizer.encode(text);
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (int& count : wrong)
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) count += tokenizer.encode(text) != expected;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(wrong, testing::Each(0));
}

TEST(Tokenizer, KnowsItsTokens) {
  TokenizerSpec spec = small_spec();
  spec.vocabulary.push_back({"outside the alphabet", 300});
  spec.added_tokens.push_back({.content = "<pad>", .id = 301, .special = false});
  const Tokenizer tokenizer(spec);
  EXPECT_EQ(tokenizer.vocab_size(), 302u);
  EXPECT_EQ(tokenizer.eos_id(), 259);
  EXPECT_EQ(tokenizer.token_name(256), "Ġa");
  EXPECT_EQ(tokenizer.token_bytes(256), " a");
  EXPECT_EQ(tokenizer.token_text(256), " a");
  EXPECT_EQ(tokenizer.token_text(198), "\\x0a");
  EXPECT_EQ(tokenizer.token_text(258), "\u00e9");
  EXPECT_EQ(tokenizer.token_text(300), "outside the alphabet");
  EXPECT_EQ(tokenizer.decode(Ids{300}), "outside the alphabet");
  EXPECT_EQ(tokenizer.id_of("Ġa"), 256);
  EXPECT_EQ(tokenizer.id_of("<pad>"), 301);
  EXPECT_EQ(tokenizer.id_of(" a"), std::nullopt);
  EXPECT_EQ(tokenizer.require_id(" a"), 256);
  EXPECT_EQ(tokenizer.require_id("Ġa"), 256);
  EXPECT_ERROR(tokenizer.require_id(" b"), "no token ' b'; the nearest are 'Ġ");
  EXPECT_ERROR(tokenizer.require_id(std::string(1 << 20, 'x')), "no token 'xxx");
  EXPECT_TRUE(tokenizer.is_special(259));
  EXPECT_FALSE(tokenizer.is_special(301));
  ASSERT_EQ(tokenizer.added_tokens().size(), 2u);
  EXPECT_EQ(tokenizer.encode("<pad>"), (Ids{301}));
}

TEST(Tokenizer, IdsOutOfRangeAreNamed) {
  TokenizerSpec spec = small_spec();
  spec.vocabulary.push_back({"far", 270});
  const Tokenizer tokenizer(spec);
  EXPECT_ERROR(tokenizer.decode(Ids{1, 271}),
               "token id 271 is outside the vocabulary of 271 tokens");
  EXPECT_ERROR(tokenizer.decode(Ids{-1}), "token id -1 is outside the vocabulary of 271 tokens");
  EXPECT_ERROR(tokenizer.decode(Ids{265}), "token id 265 is unused");
  EXPECT_ERROR(tokenizer.token_text(271), "token id 271");
  EXPECT_TRUE(tokenizer.has_token(270));
  EXPECT_FALSE(tokenizer.has_token(265));
  EXPECT_FALSE(tokenizer.has_token(271));
  EXPECT_FALSE(tokenizer.has_token(-1));
}

TEST(Tokenizer, EndOfTextIsFoundByName) {
  TokenizerSpec spec = spec_with_rules({});
  EXPECT_EQ(Tokenizer(spec).eos_id(), std::nullopt);
  spec.vocabulary.push_back({"</s>", 256});
  EXPECT_EQ(Tokenizer(spec).eos_id(), 256);
  spec.vocabulary.push_back({std::string(kEndOfText), 257});
  EXPECT_EQ(Tokenizer(spec).eos_id(), 257);
  spec.end_token = "absent";
  EXPECT_EQ(Tokenizer(spec).eos_id(), 257);
  spec.end_token = "</s>";
  EXPECT_EQ(Tokenizer(spec).eos_id(), 256);
}

TEST(StreamingDecoder, GivesOutWholeCharacters) {
  const Tokenizer tokenizer(small_spec());
  StreamingDecoder decoder(tokenizer);
  std::vector<std::string> parts;
  for (const TokenId id : tokenizer.encode("a\u65e5!", {})) parts.push_back(decoder.push(id));
  EXPECT_EQ(parts, (std::vector<std::string>{"a", "", "", "\u65e5", "!"}));
  EXPECT_EQ(decoder.finish(), "");
}

TEST(StreamingDecoder, ReplacesWhatNeverBecomesACharacter) {
  const Tokenizer tokenizer(small_spec());
  const auto byte = [&](unsigned char value) {
    return *tokenizer.id_of(byte_level_character(value));
  };
  StreamingDecoder decoder(tokenizer);
  EXPECT_EQ(decoder.push(byte(0xFF)), "\uFFFD");
  EXPECT_EQ(decoder.push(byte(0xE6)), "");
  EXPECT_EQ(decoder.push(byte(0x97)), "");
  EXPECT_EQ(decoder.push(byte('x')), "\uFFFDx");
  EXPECT_EQ(decoder.push(byte(0xF0)), "");
  EXPECT_EQ(decoder.finish(), "\uFFFD");
  EXPECT_EQ(decoder.finish(), "");
  EXPECT_ERROR(decoder.push(9999), "token id 9999");
  StreamingDecoder quiet(tokenizer, {.skip_special_tokens = true});
  EXPECT_EQ(quiet.push(259), "");
}

TEST(TokenizerFolder, PrefersTokenizerJson) {
  const auto folder = fresh_folder();
  Tokenizer(small_spec()).save(folder);
  EXPECT_EQ(Tokenizer::from_folder(folder).encode("bc"), (Ids{257}));
  std::ofstream(folder / "merges.txt") << "norules\n";  // is not even read
  EXPECT_EQ(Tokenizer::from_folder(folder).encode("bc"), (Ids{257}));
  std::filesystem::remove(folder / "tokenizer.json");
  EXPECT_ERROR(Tokenizer::from_folder(folder), "merges.txt: line 1: ");
  std::ofstream(folder / "merges.txt") << "#version: 0.2\n";
  EXPECT_ERROR(Tokenizer::from_folder(folder), "the file was cut short");
  Tokenizer(small_spec()).save(folder);
  std::filesystem::remove(folder / "tokenizer.json");
  EXPECT_EQ(Tokenizer::from_folder(folder).encode("bc"), (Ids{257}));
  // One that is there and cannot be read is no reason to read the others.
  std::filesystem::create_symlink("nowhere", folder / "tokenizer.json");
  EXPECT_ERROR(Tokenizer::from_folder(folder), "tokenizer.json': No such file");
  std::filesystem::remove(folder / "tokenizer.json");
  std::filesystem::create_directory(folder / "tokenizer.json");
  EXPECT_ERROR(Tokenizer::from_folder(folder), "not a regular file");
  std::filesystem::remove(folder / "tokenizer.json");
  std::ofstream(folder / "tokenizer_config.json") << R"({"eos_token": "!"})";
  EXPECT_EQ(Tokenizer::from_folder(folder).eos_id(), 0);
  std::filesystem::remove(folder / "vocab.json");
  EXPECT_ERROR(Tokenizer::from_folder(folder), "neither tokenizer.json nor vocab.json");
  EXPECT_ERROR(Tokenizer::from_folder(folder / "absent"), "no tokenizer in '");
  EXPECT_ERROR(Tokenizer::from_tokenizer_json(folder / "absent.json"), "absent.json");
}

TEST(TokenizerFolder, SavingKeepsEverything) {
  TokenizerSpec spec = small_spec();
  spec.vocabulary.push_back({"far \"quoted\" \\", 270});
  spec.added_tokens.push_back({.content = "<mask>\n\"\\\u65e5",
                               .id = 275,
                               .special = false,
                               .normalized = true,
                               .strip_left = true,
                               .strip_right = true});
  spec.add_prefix_space = true;
  spec.use_pattern = false;
  spec.bpe = {.unknown_token = "!", .fuse_unknown = true, .ignore_merges = true};
  const auto folder = fresh_folder() / "new" / "folder";
  Tokenizer(spec).save(folder);
  const TokenizerSpec back =
      parse_tokenizer_json(read_file(folder / "tokenizer.json"), "tokenizer.json");
  EXPECT_EQ(back.vocabulary.size(), spec.vocabulary.size());
  EXPECT_EQ(back.rules.size(), spec.rules.size());
  ASSERT_EQ(back.added_tokens.size(), 2u);
  EXPECT_EQ(back.added_tokens[1].content, spec.added_tokens[1].content);
  EXPECT_EQ(back.added_tokens[1].id, 275);
  EXPECT_FALSE(back.added_tokens[1].special);
  EXPECT_TRUE(back.added_tokens[1].normalized);
  EXPECT_TRUE(back.added_tokens[1].strip_left);
  EXPECT_TRUE(back.added_tokens[1].strip_right);
  EXPECT_TRUE(back.add_prefix_space);
  EXPECT_FALSE(back.use_pattern);
  EXPECT_EQ(back.bpe.unknown_token, "!");
  EXPECT_TRUE(back.bpe.fuse_unknown);
  EXPECT_TRUE(back.bpe.ignore_merges);
  const Tokenizer loaded = Tokenizer::from_folder(folder);
  EXPECT_EQ(loaded.id_of("far \"quoted\" \\"), 270);
  // Only what belongs there is left: no partial files.
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++files;
  EXPECT_EQ(files, 3u);
}

TEST(TokenizerFolder, SavingWithoutRulesOrAddedTokens) {
  const auto folder = fresh_folder();
  Tokenizer(spec_with_rules({})).save(folder);
  const Tokenizer loaded = Tokenizer::from_folder(folder);
  EXPECT_EQ(loaded.vocab_size(), 256u);
  EXPECT_EQ(loaded.decode(loaded.encode("text")), "text");
}

TEST(TokenizerFolder, SavingFailsClearly) {
  const auto folder = fresh_folder();
  std::ofstream(folder / "file") << "x";
  EXPECT_ERROR(Tokenizer(small_spec()).save(folder / "file"), "cannot create the folder");
  EXPECT_ERROR(Tokenizer(small_spec()).save(folder / "file" / "below"), "cannot create the folder");
  TokenizerSpec spec = spec_with_rules({});
  spec.vocabulary.push_back({"a b", 256});
  spec.vocabulary.push_back({"a bc", 257});
  spec.rules.push_back({"a b", "c", 0});
  EXPECT_ERROR(Tokenizer(spec).save(folder / "spaces"),
               "merges.txt cannot hold the merge of 'a b'");
  EXPECT_FALSE(std::filesystem::exists(folder / "spaces"));
}

// A limit on file size makes writing fail half-way, as a full disk does.
TEST(TokenizerFolder, AFullDiskLeavesTheOldFiles) {
  const auto folder = fresh_folder();
  Tokenizer(spec_with_rules({})).save(folder);
  const std::string before = read_file(folder / "vocab.json");
  rlimit old_limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const rlimit tight = {1000, old_limit.rlim_max};
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  EXPECT_ERROR(Tokenizer(small_spec()).save(folder), "vocab.json");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(read_file(folder / "vocab.json"), before);
  EXPECT_EQ(Tokenizer::from_folder(folder).vocab_size(), 256u);
}

}  // namespace
}  // namespace filigree
