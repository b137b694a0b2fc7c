#include <fmt/format.h>

#include <cstring>
#include <numeric>

#include "base/checksum.h"
#include "filigree/data.h"
#include "text/text_test_support.h"

namespace filigree {
namespace {

using ::testing::UnorderedElementsAre;

std::vector<TokenId> counting(TokenId count, TokenId modulus) {
  std::vector<TokenId> ids(static_cast<std::size_t>(count));
  for (TokenId i = 0; i < count; ++i) ids[static_cast<std::size_t>(i)] = i % modulus;
  return ids;
}

TokenShardsWriter::Options options_of(std::uint64_t vocabulary, std::uint64_t shard_tokens = 10) {
  return {
      .vocabulary = vocabulary, .end_of_text = 0, .tokenizer = 77, .shard_tokens = shard_tokens};
}

// 25 tokens of train in three shards, 3 held out.
std::filesystem::path small_folder(std::uint64_t vocabulary = 100) {
  const std::filesystem::path folder = fresh_folder();
  TokenShardsWriter writer(folder, options_of(vocabulary));
  writer.add_tokens(0, counting(25, 100));
  writer.add_documents(0, 2, 90);
  writer.add_tokens(1, std::vector<TokenId>{7, 8, 9});
  writer.add_documents(1, 1, 12);
  writer.finish();
  return folder;
}

// Puts a number over the bytes at `offset`.
template <typename Number>
void patch(const std::filesystem::path& path, std::size_t offset, Number number) {
  std::string bytes = read_file(path);
  std::memcpy(bytes.data() + offset, &number, sizeof(number));
  write_file(path, bytes);
}

void replace_in_index(const std::filesystem::path& folder, const std::string& from,
                      const std::string& to) {
  std::string text = read_file(folder / "index.json");
  const std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from << " in " << text;
  write_file(folder / "index.json", text.replace(at, from.size(), to));
}

std::vector<TokenId> all_tokens(const TokenSplit& split) {
  std::vector<TokenId> ids(split.tokens());
  split.read(0, ids);
  return ids;
}

TEST(TokenShards, GiveBackWhatWasWritten) {
  const TokenShards shards = TokenShards::open(small_folder());
  EXPECT_EQ(shards.index().vocabulary, 100u);
  EXPECT_EQ(shards.index().token_bytes(), 2);
  EXPECT_EQ(shards.index().tokenizer, 77u);
  const TokenSplit& train = shards.split("train");
  EXPECT_EQ(train.entry().documents, 2u);
  EXPECT_EQ(train.entry().text_bytes, 90u);
  ASSERT_EQ(train.entry().shards.size(), 3u);
  EXPECT_EQ(train.entry().shards[2].file, "train-00002.tokens");
  EXPECT_EQ(train.entry().shards[2].tokens, 5u);
  EXPECT_EQ(all_tokens(train), counting(25, 100));
  EXPECT_EQ(all_tokens(shards.split("held-out")), (std::vector<TokenId>{7, 8, 9}));
  EXPECT_TRUE(shards.has_split("held-out"));
  EXPECT_FALSE(shards.has_split("test"));
  EXPECT_ERROR(shards.split("test"), "no split 'test'; the splits are train, held-out");
}

TEST(TokenShards, ReadAcrossShards) {
  const TokenShards shards = TokenShards::open(small_folder());
  const TokenSplit& train = shards.split("train");
  for (std::uint64_t begin = 0; begin <= 25; ++begin)
    for (std::size_t count = 0; begin + count <= 25; ++count) {
      std::vector<TokenId> ids(count);
      train.read(begin, ids);
      for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(ids[i], static_cast<TokenId>(begin + i));
    }
  std::vector<TokenId> two(2);
  EXPECT_ERROR(train.read(24, two), "has 25 tokens, so 2 from token 24 on are not all there");
  EXPECT_ERROR(train.read(UINT64_MAX, two), "not all there");
}

TEST(TokenShards, HoldLargeVocabularies) {
  for (const std::uint64_t vocabulary : {65536u, 65537u}) {
    const std::filesystem::path folder = fresh_folder();
    TokenShardsWriter writer(folder, options_of(vocabulary));
    const std::vector<TokenId> ids = {0, 65535, static_cast<TokenId>(vocabulary - 1)};
    writer.add_tokens(0, ids);
    writer.finish();
    const TokenShards shards = TokenShards::open(folder);
    EXPECT_EQ(shards.index().token_bytes(), vocabulary == 65536 ? 2 : 4);
    EXPECT_EQ(all_tokens(shards.split("train")), ids);
    EXPECT_EQ(shards.split("held-out").tokens(), 0u);
  }
}

TEST(TokenShards, AreTheDocumentedBytes) {
  const std::filesystem::path folder = small_folder();
  const std::string payload("\x07\0\x08\0\x09\0", 6);
  const std::uint64_t checksum = xxh64(payload);
  std::string expected("FGTOKENS\x01\0\0\0\x02\0\0\0\x03\0\0\0\0\0\0\0", 24);
  expected.append(reinterpret_cast<const char*>(&checksum), 8);
  EXPECT_EQ(read_file(folder / "held-out-00000.tokens"), expected + payload);
}

TEST(TokenShards, DoNotOpenBeforeTheyAreFinished) {
  const std::filesystem::path folder = fresh_folder();
  {
    TokenShardsWriter writer(folder, options_of(100));
    writer.add_tokens(0, counting(25, 100));
    EXPECT_TRUE(std::filesystem::exists(folder / "train-00000.tokens"));
  }
  EXPECT_ERROR(TokenShards::open(folder), "has no index.json");
  EXPECT_ERROR(TokenShards::open(folder / "nothing"), "has no index.json");
}

TEST(TokenShards, AreReplacedWithoutAMixture) {
  const std::filesystem::path folder = small_folder();
  write_file(folder / "train-00001.tokens.12-3.partial", "left by a killed run");
  write_file(folder / "notes.txt", "mine");
  TokenShardsWriter writer(folder, options_of(50));
  EXPECT_ERROR(TokenShards::open(folder), "has no index.json");
  writer.add_tokens(0, std::vector<TokenId>{1, 2});
  writer.finish();
  EXPECT_EQ(all_tokens(TokenShards::open(folder).split("train")), (std::vector<TokenId>{1, 2}));
  std::vector<std::string> files;
  for (const auto& item : std::filesystem::directory_iterator(folder))
    files.push_back(item.path().filename().string());
  EXPECT_THAT(files, UnorderedElementsAre("index.json", "train-00000.tokens", "notes.txt"));
}

TEST(TokenShards, RefuseWhatCannotBeWritten) {
  const std::filesystem::path folder = fresh_folder();
  TokenShardsWriter writer(folder, options_of(100));
  EXPECT_ERROR(writer.add_tokens(0, std::vector<TokenId>{1, 100}), "id 100 is beyond");
  EXPECT_ERROR(writer.add_tokens(0, std::vector<TokenId>{-1}), "id -1 is beyond");
  EXPECT_ERROR(TokenShardsWriter(folder, options_of(0)), "vocabulary of 0");
  EXPECT_ERROR(TokenShardsWriter(folder, options_of(100, 0)), "shards of 0 tokens");
  auto options = options_of(100);
  options.end_of_text = 100;
  EXPECT_ERROR(TokenShardsWriter(folder, options), "end-of-text token 100 is beyond");
  write_file(folder / "file", "");
  EXPECT_ERROR(TokenShardsWriter(folder / "file" / "below", options_of(100)),
               "cannot create the folder");
}

TEST(TokenShards, RefuseDamagedShards) {
  const std::filesystem::path folder = small_folder();
  const std::filesystem::path shard = folder / "train-00001.tokens";
  const std::string whole = read_file(shard);
  const auto expect = [&](const std::string& part) {
    EXPECT_ERROR(TokenShards::open(folder), "train-00001.tokens");
    EXPECT_ERROR(TokenShards::open(folder), part);
    write_file(shard, whole);
    TokenShards::open(folder);
  };
  write_file(shard, whole.substr(0, whole.size() - 1));
  expect("10 tokens take 52 bytes, but the file has 51");
  write_file(shard, whole.substr(0, whole.size() - 2));
  expect("it is truncated or damaged");
  write_file(shard, whole + "xx");
  expect("but the file has 54");
  write_file(shard, whole.substr(0, 31));
  expect("fewer than a header's 32");
  write_file(shard, "");
  expect("fewer than a header's 32");
  patch(shard, 0, 'f');
  expect("does not begin like a token shard");
  patch(shard, 8, std::uint32_t{2});
  expect("version 2 of the format");
  patch(shard, 12, std::uint32_t{4});
  expect("4 bytes a token, but the index says 2");
  patch(shard, 16, std::uint64_t{11});
  expect("it has 11 tokens, but the index says 10");
  patch(shard, 16, UINT64_MAX);
  expect("but the index says 10");
  patch(shard, 24, std::uint64_t{1});
  expect("do not belong together");
  patch(shard, 40, std::uint16_t{3});
  expect("it is damaged");
  std::filesystem::remove(shard);
  expect("No such file");
}

TEST(TokenShards, CheckContentsOnlyWhenAsked) {
  const std::filesystem::path folder = small_folder();
  patch(folder / "train-00001.tokens", 40, std::uint16_t{3});
  TokenShards::open(folder, ShardCheck::kSizes);
  EXPECT_ERROR(TokenShards::open(folder, ShardCheck::kContents), "it is damaged");
}

TEST(TokenShards, RefuseIdsBeyondTheVocabulary) {
  for (const std::string vocabulary : {"100", "70000"}) {
    const std::filesystem::path folder = small_folder(std::stoull(vocabulary));
    // With the right checksum for the wrong id, as another program might write it.
    const std::filesystem::path shard = folder / "held-out-00000.tokens";
    const int width = vocabulary == "100" ? 2 : 4;
    std::string before = read_file(shard).substr(32);
    if (width == 2)
      patch(shard, 34, std::uint16_t{100});
    else
      patch(shard, 36, std::uint32_t{70000});
    const std::string after = read_file(shard).substr(32);
    patch(shard, 24, xxh64(after));
    replace_in_index(folder, checksum_text(xxh64(before)), checksum_text(xxh64(after)));
    EXPECT_ERROR(TokenShards::open(folder),
                 fmt::format("token 1 is {0}, beyond the vocabulary of {0}", vocabulary));
  }
}

TEST(TokenShards, RefuseDamagedIndexes) {
  const std::filesystem::path folder = small_folder();
  const std::string whole = read_file(folder / "index.json");
  const auto expect = [&](const std::string& from, const std::string& to, const std::string& part) {
    replace_in_index(folder, from, to);
    EXPECT_ERROR(TokenShards::open(folder), part);
    write_file(folder / "index.json", whole);
  };
  expect("filigree token shards", "something else", "not an index of token shards");
  expect("\"version\": 1", "\"version\": 2", "version 2 of the format");
  expect("\"vocabulary\": 100", "\"vocabulary\": 0", "key 'vocabulary' is 0, should be");
  expect("\"vocabulary\": 100", "\"vocabulary\": 99999999999",
         "key 'vocabulary' is 99999999999, should be an integer from 1 to 2147483647");
  expect("\"vocabulary\": 100", "\"vocabulary\": 70000", "takes 4");
  expect("\"end_of_text\": 0", "\"end_of_text\": 100",
         "key 'end_of_text' is 100, should be an integer from 0 to 99");
  expect("\"tokens\": 25", "\"tokens\": 24", "25 tokens together, but 'tokens' says 24");
  expect("\"tokens\": 25", "\"tokens\": \"x\"",
         "key 'splits[0].tokens' is the string \"x\", should be an integer");
  expect("\"tokens\": 10", "\"tokens\": 72057594037927937",
         "key 'splits[0].shards[0].tokens' is 72057594037927937, should be");
  expect("\"tokens\": 3,\n          \"checksum\"", "\"tokens\": 0,\n          \"checksum\"",
         "has no tokens");
  expect("\"held-out\"", "\"train\"", "split 'train' is listed twice");
  expect("train-00001", "train-00000", "is listed twice");
  expect("train-00001", "../train-00001", "not the name of a file in the folder");
  expect("\"checksum\": \"", "\"checksum\": \"0", "not 16 hexadecimal digits");
  expect("\"checksum\": \"", "\"chucksum\": \"", "key 'splits[0].shards[0].checksum' is missing");
  expect("\"splits\": [", "\"splits\": [3, ", "key 'splits[0]' is 3, should be an object");
  write_file(folder / "index.json", whole.substr(0, whole.size() / 2));
  EXPECT_ERROR(TokenShards::open(folder), "index.json");
}

TEST(TokenShards, KnowTheirDataAgain) {
  const TokenShards shards = TokenShards::open(small_folder());
  EXPECT_NE(shards.split("train").fingerprint(), shards.split("held-out").fingerprint());
  const std::uint64_t before = shards.split("train").fingerprint();
  EXPECT_EQ(TokenShards::open(small_folder()).split("train").fingerprint(), before);
}

TEST(TokenizerFingerprint, TellsVocabulariesApart) {
  const Tokenizer bytes(spec_with_rules({}));
  const Tokenizer ab(spec_with_rules({{"a", "b"}}));
  const Tokenizer ac(spec_with_rules({{"a", "c"}}));
  EXPECT_EQ(tokenizer_fingerprint(ab),
            tokenizer_fingerprint(Tokenizer(spec_with_rules({{"a", "b"}}))));
  EXPECT_NE(tokenizer_fingerprint(ab), tokenizer_fingerprint(bytes));
  EXPECT_NE(tokenizer_fingerprint(ab), tokenizer_fingerprint(ac));
}

TEST(TokenizerFingerprint, OfRulesTellsTheirOrderApart) {
  const auto rules = [](std::vector<std::pair<std::string, std::string>> in_order) {
    TokenizerSpec spec = spec_with_rules({{"a", "b"}, {"b", "c"}});
    spec.rules.clear();
    for (const auto& [left, right] : in_order) spec.rules.push_back({left, right});
    return Tokenizer(spec);
  };
  const Tokenizer one = rules({{"a", "b"}, {"b", "c"}}), other = rules({{"b", "c"}, {"a", "b"}});
  EXPECT_NE(one.encode("abc"), other.encode("abc"));
  EXPECT_EQ(tokenizer_fingerprint(one), tokenizer_fingerprint(other));
  EXPECT_NE(one.rules_fingerprint(), other.rules_fingerprint());
  EXPECT_EQ(one.rules_fingerprint(), rules({{"a", "b"}, {"b", "c"}}).rules_fingerprint());

  const std::filesystem::path folder = fresh_folder();
  one.save(folder);
  EXPECT_EQ(Tokenizer::from_folder(folder).rules_fingerprint(), one.rules_fingerprint());
  EXPECT_EQ(Tokenizer::from_vocab_and_merges(folder / "vocab.json", folder / "merges.txt")
                .rules_fingerprint(),
            one.rules_fingerprint());
  TokenizerSpec spaced = spec_with_rules({});
  spaced.add_prefix_space = true;
  EXPECT_NE(Tokenizer(spaced).rules_fingerprint(),
            Tokenizer(spec_with_rules({})).rules_fingerprint());
}

}  // namespace
}  // namespace filigree
