#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/atomic_file.h"
#include "base/checksum.h"
#include "base/file_status.h"
#include "base/folders.h"
#include "base/mapped_file.h"
#include "filigree/data.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "filigree/runtime.h"
#include "text/shard_file.h"

namespace filigree {
namespace {

constexpr std::string_view kExtension = ".tokens";
constexpr std::uint64_t kMostShardTokens = std::uint64_t{1} << 28;

std::string shown(const std::filesystem::path& path) { return printable(path.string(), 400); }

// "train-00012.tokens", and what a killed run left of it.
bool is_shard_of(const std::string& file, const std::string& split) {
  return file.starts_with(split + "-") &&
         (file.ends_with(kExtension) || file.ends_with(".partial"));
}

void remove_earlier_run(const std::filesystem::path& folder,
                        const std::vector<std::string>& splits) {
  // The index first: a folder that has one must be whole.
  remove_file(folder / kShardIndexFile);
  for (const FolderEntry& entry : entries_of(folder))
    for (const std::string& split : splits)
      if (is_shard_of(entry.name, split)) remove_file(folder / entry.name);
}

constexpr const char* kTokenizerRemedy =
    "put back the tokenizer that made the shards, or prepare them again";

void require_tokenizer_file(const std::filesystem::path& folder, const TokenizerFileEntry& entry) {
  const std::filesystem::path path = folder / entry.file;
  const auto file = MappedFile::open(path);
  require(file->bytes().size() == entry.bytes,
          "token shards: '{}' has {} bytes and had {} when the shards were made; {}", shown(path),
          file->bytes().size(), entry.bytes, kTokenizerRemedy);
  const std::uint64_t checksum = xxh64(file->bytes());
  require(checksum == entry.checksum,
          "token shards: '{}' has the checksum {} and had {} when the shards were made; {}",
          shown(path), checksum_text(checksum), checksum_text(entry.checksum), kTokenizerRemedy);
}

// Models that are trained on the shards get the tokenizer from here.
void require_own_tokenizer(const std::filesystem::path& folder, const ShardIndex& index) {
  for (const TokenizerFileEntry& entry : index.tokenizer_files)
    require_tokenizer_file(folder, entry);
  if (!index.tokenizer_files.empty() || !Tokenizer::is_in(folder)) return;
  require(made_by(index, Tokenizer::from_folder(folder)),
          "token shards: the tokenizer in '{}' is not the one that made the shards; {}",
          shown(folder), kTokenizerRemedy);
}

}  // namespace

TokenShardsWriter::TokenShardsWriter(std::filesystem::path folder, Options options)
    : folder_(std::move(folder)), options_(std::move(options)), pending_(options_.splits.size()) {
  require(options_.vocabulary > 0 && options_.vocabulary <= std::uint64_t{INT32_MAX},
          "token shards: a vocabulary of {} tokens is not possible", options_.vocabulary);
  require(options_.end_of_text >= 0 &&
              static_cast<std::uint64_t>(options_.end_of_text) < options_.vocabulary,
          "token shards: the end-of-text token {} is beyond the vocabulary of {}",
          options_.end_of_text, options_.vocabulary);
  require(options_.shard_tokens > 0 && options_.shard_tokens <= kMostShardTokens,
          "token shards: shards of {} tokens are not possible; give 1 to {}", options_.shard_tokens,
          kMostShardTokens);
  index_.vocabulary = options_.vocabulary;
  index_.end_of_text = options_.end_of_text;
  index_.tokenizer = options_.tokenizer;
  index_.tokenizer_rules = options_.tokenizer_rules;
  for (const std::string& name : options_.splits)
    index_.splits.push_back({.name = name, .shards = {}});
  make_folders(folder_);
  remove_earlier_run(folder_, options_.splits);
}

void TokenShardsWriter::add_tokens(std::size_t split, std::span<const TokenId> ids) {
  const auto width = static_cast<std::size_t>(index_.token_bytes());
  std::vector<std::byte>& pending = pending_.at(split);
  while (!ids.empty()) {
    const std::size_t room =
        static_cast<std::size_t>(options_.shard_tokens) - pending.size() / width;
    const std::size_t count = std::min(room, ids.size());
    std::size_t at = pending.size();
    pending.resize(at + count * width);
    for (const TokenId id : ids.first(count)) {
      if (id < 0 || static_cast<std::uint64_t>(id) >= options_.vocabulary)
        fail("token shards: id {} is beyond the vocabulary of {}", id, options_.vocabulary);
      std::memcpy(pending.data() + at, &id, width);  // little-endian: the low bytes come first
      at += width;
    }
    ids = ids.subspan(count);
    if (count == room) flush(split);
  }
}

void TokenShardsWriter::add_documents(std::size_t split, std::uint64_t documents,
                                      std::uint64_t text_bytes) {
  index_.splits.at(split).documents += documents;
  index_.splits.at(split).text_bytes += text_bytes;
}

void TokenShardsWriter::flush(std::size_t split) {
  std::vector<std::byte>& pending = pending_[split];
  if (pending.empty()) return;
  SplitEntry& entry = index_.splits[split];
  ShardEntry shard;
  shard.file = fmt::format("{}-{:05}{}", entry.name, entry.shards.size(), kExtension);
  shard.tokens = pending.size() / static_cast<std::size_t>(index_.token_bytes());
  shard.checksum = write_shard_file(folder_ / shard.file, pending, index_.token_bytes());
  entry.tokens += shard.tokens;
  entry.shards.push_back(std::move(shard));
  pending.clear();
}

void TokenShardsWriter::add_tokenizer_files(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto file = MappedFile::open(folder_ / name);
    index_.tokenizer_files.push_back({name, file->bytes().size(), xxh64(file->bytes())});
  }
}

ShardIndex TokenShardsWriter::finish() {
  for (std::size_t split = 0; split < pending_.size(); ++split) flush(split);
  write_file_atomically(folder_ / kShardIndexFile, write_shard_index(index_));
  return index_;
}

void TokenSplit::read(std::uint64_t begin, std::span<TokenId> out) const {
  if (begin > tokens() || out.size() > tokens() - begin)
    fail("token shards: split '{}' has {} tokens, so {} from token {} on are not all there",
         printable(name()), tokens(), out.size(), begin);
  auto end = std::upper_bound(ends_.begin(), ends_.end(), begin);
  while (!out.empty()) {
    const auto shard = static_cast<std::size_t>(end - ends_.begin());
    const std::uint64_t inside = begin - (*end - (*shards_)[shard].tokens());
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), *end - begin));
    (*shards_)[shard].read(inside, out.first(count));
    out = out.subspan(count);
    begin += count;
    ++end;
  }
}

std::uint64_t TokenSplit::fingerprint() const {
  std::vector<std::uint64_t> facts;
  for (const ShardEntry& shard : entry_->shards) {
    facts.push_back(shard.tokens);
    facts.push_back(shard.checksum);
  }
  return xxh64(std::as_bytes(std::span(facts)));
}

TokenShards TokenShards::open(const std::filesystem::path& folder, ShardCheck check) {
  const std::filesystem::path index_file = folder / kShardIndexFile;
  if (!is_there(index_file))
    fail(
        "token shards: '{}' has no {}; make one with `filigree prepare`, or again if it was "
        "interrupted",
        shown(folder), kShardIndexFile);
  const std::shared_ptr<const MappedFile> index_bytes = MappedFile::open(index_file);
  TokenShards shards;
  shards.index_ = parse_shard_index(index_bytes->text(), shown(index_file));
  if (check == ShardCheck::kContents) require_own_tokenizer(folder, shards.index_);
  for (const SplitEntry& entry : shards.index_.splits) {
    TokenSplit split;
    auto files = std::make_shared<std::vector<ShardFile>>();
    std::uint64_t end = 0;
    for (const ShardEntry& shard : entry.shards) {
      files->emplace_back(folder / shard.file, shard, shards.index_.token_bytes());
      split.ends_.push_back(end += shard.tokens);
    }
    if (check == ShardCheck::kContents)
      parallel_for(static_cast<std::int64_t>(files->size()), 1,
                   [&](std::int64_t first, std::int64_t last) {
                     for (std::int64_t i = first; i < last; ++i)
                       (*files)[static_cast<std::size_t>(i)].verify(shards.index_.vocabulary);
                   });
    split.entry_ = std::make_shared<const SplitEntry>(entry);
    split.shards_ = std::move(files);
    shards.splits_.push_back(std::move(split));
  }
  return shards;
}

bool TokenShards::has_split(std::string_view name) const {
  return std::any_of(splits_.begin(), splits_.end(),
                     [&](const TokenSplit& split) { return split.name() == name; });
}

const TokenSplit& TokenShards::split(std::string_view name) const {
  for (const TokenSplit& split : splits_)
    if (split.name() == name) return split;
  index_.split(name);  // throws, with the names there are
  fail("token shards: there is no split '{}'", printable(name));
}

}  // namespace filigree
