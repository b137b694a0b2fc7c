#include "text/shard_preparation.h"

#include <map>
#include <set>

#include "filigree/runtime.h"
#include "text/text_test_support.h"
#include "text/tokenizer_files.h"

namespace filigree {
namespace {

// Bytes as tokens and <|endoftext|> as token 256.
Tokenizer byte_tokenizer() {
  TokenizerSpec spec = spec_with_rules({});
  spec.added_tokens.push_back({.content = std::string(kEndOfText), .id = 256});
  return Tokenizer(spec);
}

// `count` different documents of a few words, numbered from `first`.
std::string documents(int first, int count) {
  std::string text;
  for (int i = first; i < first + count; ++i) {
    text += "Document number " + std::to_string(i) + " says";
    for (int word = 0; word < i % 40; ++word) text += " word" + std::to_string(word * i % 97);
    text += ".\n<|endoftext|>\n";
  }
  return text;
}

std::vector<std::string> texts_of(const TokenShards& shards, std::string_view split,
                                  const Tokenizer& tokenizer) {
  std::vector<TokenId> ids(shards.split(split).tokens());
  shards.split(split).read(0, ids);
  std::vector<std::string> texts;
  std::vector<TokenId> document;
  for (const TokenId id : ids) {
    if (id == shards.index().end_of_text)
      texts.push_back(tokenizer.decode(std::exchange(document, {})));
    else
      document.push_back(id);
  }
  EXPECT_TRUE(document.empty()) << "the split ends inside a document";
  return texts;
}

std::map<std::string, std::string> files_in(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& item : std::filesystem::directory_iterator(folder))
    files[item.path().filename().string()] = read_file(item.path());
  return files;
}

TEST(PrepareShards, PutsEveryDocumentIntoOneSplitInOrder) {
  const std::filesystem::path folder = fresh_folder();
  const Tokenizer tokenizer = byte_tokenizer();
  PreparationOptions options;
  options.texts = {write_file(folder / "a.txt", documents(0, 1000)),
                   write_file(folder / "b.txt", documents(1000, 500))};
  options.held_out_share = 0.1;
  options.shard_tokens = 10000;
  const ShardIndex index = prepare_shards(options, tokenizer, folder / "out");
  const TokenShards shards = TokenShards::open(folder / "out");
  const std::vector<std::string> train = texts_of(shards, "train", tokenizer);
  const std::vector<std::string> val = texts_of(shards, "held-out", tokenizer);
  EXPECT_EQ(train.size() + val.size(), 1500u);
  EXPECT_GT(val.size(), 90u);
  EXPECT_LT(val.size(), 220u);
  EXPECT_EQ(index.split("train").documents, train.size());
  EXPECT_EQ(index.split("held-out").documents, val.size());
  EXPECT_GT(index.split("train").shards.size(), 5u);

  std::size_t next_train = 0;
  std::size_t next_val = 0;
  std::uint64_t bytes = 0;
  for (int i = 0; i < 1500; ++i) {
    const std::string prefix = "Document number " + std::to_string(i) + " says";
    const bool in_val = next_val < val.size() && val[next_val].starts_with(prefix);
    const std::string& text = in_val ? val[next_val++] : train.at(next_train++);
    EXPECT_EQ(text + "\n<|endoftext|>\n", documents(i, 1));
    bytes += text.size();
  }
  EXPECT_EQ(index.split("train").text_bytes + index.split("held-out").text_bytes, bytes);
  EXPECT_EQ(index.tokenizer, tokenizer_fingerprint(Tokenizer::from_folder(folder / "out")));
}

TEST(PrepareShards, KeepsShardsAndTheirTokenizerTogether) {
  const std::filesystem::path folder = fresh_folder();
  PreparationOptions options;
  options.texts = {write_file(folder / "a.txt", documents(0, 300))};
  const Tokenizer tokenizer = train_tokenizer_for(options, {.vocab_size = 300});
  const std::filesystem::path out = folder / "out";
  prepare_shards(options, tokenizer, out);
  const ShardIndex index = TokenShards::open(out).index();
  EXPECT_TRUE(made_by(index, tokenizer));
  EXPECT_EQ(index.tokenizer_files.size(), 3u);
  for (const TokenizerFileEntry& entry : index.tokenizer_files) {
    const std::string whole = read_file(out / entry.file);
    std::string damaged = whole;
    damaged[damaged.size() / 2] ^= 4;
    write_file(out / entry.file, damaged);
    EXPECT_ERROR(TokenShards::open(out), entry.file + "' has the checksum");
    EXPECT_NO_THROW(TokenShards::open(out, ShardCheck::kSizes));
    write_file(out / entry.file, whole + "\n");
    EXPECT_ERROR(TokenShards::open(out), entry.file + "' has ");
    std::filesystem::remove(out / entry.file);
    EXPECT_ERROR(TokenShards::open(out), entry.file);
    write_file(out / entry.file, whole);
  }
  EXPECT_NO_THROW(TokenShards::open(out));
}

TEST(PrepareShards, OfOlderVersionsAreComparedAsFarAsTheyTell) {
  const std::filesystem::path folder = fresh_folder();
  PreparationOptions options;
  options.texts = {write_file(folder / "a.txt", documents(0, 300))};
  const std::filesystem::path out = folder / "out";
  prepare_shards(options, train_tokenizer_for(options, {.vocab_size = 300}), out);
  ShardIndex index = TokenShards::open(out).index();
  index.tokenizer_rules.reset();
  index.tokenizer_files.clear();
  write_file(out / "index.json", write_shard_index(index));
  EXPECT_NO_THROW(TokenShards::open(out));
  train_tokenizer_for(options, {.vocab_size = 290}).save(out);
  EXPECT_ERROR(TokenShards::open(out), "is not the one that made the shards; put back");
  for (const char* file : {"tokenizer.json", "vocab.json", "merges.txt"})
    std::filesystem::remove(out / file);
  EXPECT_NO_THROW(TokenShards::open(out));
}

TEST(PrepareShards, WritesTheSameBytesForEveryThreadCount) {
  const std::filesystem::path folder = fresh_folder();
  PreparationOptions options;
  options.texts = {write_file(folder / "a.txt", documents(0, 3000))};
  options.shard_tokens = 50000;
  options.held_out_share = 0.2;
  const int before = num_threads();
  std::vector<std::map<std::string, std::string>> results;
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    const Tokenizer tokenizer = train_tokenizer_for(options, {.vocab_size = 300});
    const auto out = folder / std::to_string(threads);
    prepare_shards(options, tokenizer, out);
    results.push_back(files_in(out));
  }
  set_num_threads(before);
  EXPECT_GE(results[0].size(), 6u);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST(PrepareShards, TakesValidationFromItsOwnFiles) {
  const std::filesystem::path folder = fresh_folder();
  PreparationOptions options;
  options.texts = {write_file(folder / "a.txt", documents(0, 200))};
  options.held_out_texts = {write_file(folder / "b.txt", documents(200, 20))};
  options.held_out_share = 0.5;
  const ShardIndex index = prepare_shards(options, byte_tokenizer(), folder / "out");
  EXPECT_EQ(index.split("train").documents, 200u);
  EXPECT_EQ(index.split("held-out").documents, 20u);
}

TEST(PrepareShards, PutsEqualDocumentsOnOneSide) {
  const std::filesystem::path folder = fresh_folder();
  PreparationOptions options;
  options.texts = {write_file(folder / "a.txt", documents(0, 100) + documents(0, 100))};
  options.held_out_share = 0.5;
  const Tokenizer tokenizer = byte_tokenizer();
  prepare_shards(options, tokenizer, folder / "out");
  const TokenShards shards = TokenShards::open(folder / "out");
  const auto train = texts_of(shards, "train", tokenizer);
  const std::set<std::string> train_set(train.begin(), train.end());
  for (const std::string& text : texts_of(shards, "held-out", tokenizer))
    EXPECT_FALSE(train_set.contains(text));
  EXPECT_EQ(train_set.size() * 2, train.size());
}

TEST(PrepareShards, KeepsThePiecesOfAHugeDocumentTogether) {
  const std::filesystem::path folder = fresh_folder();
  std::string huge;
  while (huge.size() < (std::size_t{5} << 20)) huge += "line of a huge document\n";
  huge += "end";
  PreparationOptions options;
  options.texts = {write_file(folder / "a.txt", huge + "\n<|endoftext|>\nsmall")};
  options.held_out_share = 0;
  const Tokenizer tokenizer = byte_tokenizer();
  const ShardIndex index = prepare_shards(options, tokenizer, folder / "out");
  const auto texts = texts_of(TokenShards::open(folder / "out"), "train", tokenizer);
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_TRUE(texts[0] == huge);
  EXPECT_EQ(texts[1], "small");
  EXPECT_EQ(index.split("train").documents, 2u);
  EXPECT_EQ(index.split("held-out").tokens, 0u);
}

TEST(PrepareShards, LeavesNoFolderThatOpensWhenItFails) {
  const std::filesystem::path folder = fresh_folder();
  PreparationOptions options;
  options.texts = {write_file(folder / "a.txt", documents(0, 2000)),
                   write_file(folder / "b.txt", "good\n<|endoftext|>\nbad \xFF")};
  options.shard_tokens = 30000;
  const Tokenizer tokenizer = byte_tokenizer();
  EXPECT_ERROR(prepare_shards(options, tokenizer, folder / "out"), "invalid UTF-8 at byte 23");
  EXPECT_ERROR(TokenShards::open(folder / "out"), "has no index.json");
  options.replace_invalid_utf8 = true;
  prepare_shards(options, tokenizer, folder / "out");
  EXPECT_EQ(texts_of(TokenShards::open(folder / "out"), "train", tokenizer).back(),
            "bad \xEF\xBF\xBD");
  // A run that its caller stops.
  EXPECT_ERROR(prepare_shards(options, tokenizer, folder / "out",
                              [](const PreparationProgress&) { fail("stopped"); }),
               "stopped");
  EXPECT_ERROR(TokenShards::open(folder / "out"), "has no index.json");
}

TEST(PrepareShards, RefusesBeforeItTouchesTheFolder) {
  const std::filesystem::path folder = fresh_folder();
  PreparationOptions options;
  options.texts = {write_file(folder / "a.txt", documents(0, 10))};
  const Tokenizer tokenizer = byte_tokenizer();
  prepare_shards(options, tokenizer, folder / "out");
  options.texts.push_back(folder / "missing.txt");
  EXPECT_ERROR(prepare_shards(options, tokenizer, folder / "out"), "missing.txt");
  options.texts.pop_back();
  EXPECT_ERROR(prepare_shards(options, Tokenizer(spec_with_rules({})), folder / "out"),
               "no end-of-text token");
  options.held_out_share = 1;
  EXPECT_ERROR(prepare_shards(options, tokenizer, folder / "out"), "held-out share of 1");
  TokenShards::open(folder / "out");
}

TEST(PrepareShards, RefusesEmptyTexts) {
  const std::filesystem::path folder = fresh_folder();
  PreparationOptions options;
  options.texts = {write_file(folder / "a.txt", "\n\n<|endoftext|>\n")};
  EXPECT_ERROR(prepare_shards(options, byte_tokenizer(), folder / "out"), "the texts are empty");
  EXPECT_ERROR(train_tokenizer_for(options, {.vocab_size = 300}), "the texts are empty");
}

TEST(PrepareShards, SpellsTheNamesOfTokensThatTheTextMentions) {
  const std::filesystem::path folder = fresh_folder();
  TokenizerSpec spec = spec_with_rules({});
  spec.added_tokens.push_back({.content = std::string(kEndOfText), .id = 256});
  spec.added_tokens.push_back({.content = "<|pad|>", .id = 257});
  const Tokenizer tokenizer(spec);
  PreparationOptions options;
  options.texts = {write_file(folder / "a.txt", "a <|pad|> b")};
  options.held_out_share = 0;
  const ShardIndex index = prepare_shards(options, tokenizer, folder / "out");
  EXPECT_EQ(index.split("train").tokens, 12u);
}

TEST(PrepareShards, ReportsProgress) {
  const std::filesystem::path folder = fresh_folder();
  PreparationOptions options;
  options.texts = {write_file(folder / "a.txt", documents(0, 60000))};
  std::vector<PreparationProgress> reports;
  const ShardIndex index =
      prepare_shards(options, byte_tokenizer(), folder / "out",
                     [&](const PreparationProgress& progress) { reports.push_back(progress); });
  ASSERT_GT(reports.size(), 1u);
  EXPECT_LT(reports[0].file_bytes, reports.back().file_bytes);
  EXPECT_EQ(reports.back().file_bytes, std::filesystem::file_size(options.texts[0]));
  EXPECT_EQ(reports.back().tokens, index.split("train").tokens + index.split("held-out").tokens);
}

}  // namespace
}  // namespace filigree
