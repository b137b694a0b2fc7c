#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <charconv>
#include <set>

#include "base/checksum.h"
#include "filigree/data.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "json/object.h"

namespace filigree {
namespace {

constexpr std::string_view kFormat = "filigree token shards";
constexpr std::uint64_t kIndexVersion = 1;
constexpr std::uint64_t kMostTokens = std::uint64_t{1} << 56;  // sums of it cannot overflow

std::uint64_t count(const JsonObject& object, const char* key, std::uint64_t most = kMostTokens) {
  return static_cast<std::uint64_t>(object.integer(key, 0, static_cast<std::int64_t>(most)));
}

std::uint64_t checksum(const JsonObject& object, const char* key) {
  const std::string digits = object.string(key);
  std::uint64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stopped, failure] = std::from_chars(digits.data(), end, value, 16);
  require(digits.size() == 16 && failure == std::errc() && stopped == end,
          "{}: '{}' is '{}', not 16 hexadecimal digits", object.source(), key, printable(digits));
  return value;
}

// A file of the same folder: an index must not make us read anything else.
void check_file_name(const std::string& file, const std::string& place) {
  require(!file.empty() && file.find_first_of("/\\") == std::string::npos && file != "." &&
              file != ".." && file.find('\0') == std::string::npos,
          "{}: '{}' is not the name of a file in the folder", place, printable(file));
}

SplitEntry parse_split(const JsonObject& object, std::set<std::string>& files) {
  SplitEntry split;
  split.name = object.string("name");
  split.tokens = count(object, "tokens");
  split.documents = count(object, "documents");
  split.text_bytes = count(object, "text_bytes");
  const std::string place = fmt::format("{}: split '{}'", object.source(), printable(split.name));
  std::uint64_t tokens = 0;
  for (const JsonObject& shard : object.objects("shards")) {
    const ShardEntry& entry = split.shards.emplace_back(
        ShardEntry{shard.string("file"), count(shard, "tokens"), checksum(shard, "checksum")});
    check_file_name(entry.file, place);
    require(files.insert(entry.file).second, "{}: '{}' is listed twice", place,
            printable(entry.file));
    require(entry.tokens > 0, "{}: '{}' has no tokens", place, printable(entry.file));
    tokens += entry.tokens;
    require(tokens <= kMostTokens, "{}: too many tokens", place);
  }
  require(tokens == split.tokens, "{}: its shards have {} tokens together, but 'tokens' says {}",
          place, tokens, split.tokens);
  return split;
}

}  // namespace

const SplitEntry& ShardIndex::split(std::string_view name) const {
  std::string names;
  for (const SplitEntry& entry : splits) {
    if (entry.name == name) return entry;
    names += (names.empty() ? "" : ", ") + printable(entry.name);
  }
  fail("token shards: there is no split '{}'; the splits are {}", printable(name),
       names.empty() ? "none" : names);
}

std::string write_shard_index(const ShardIndex& index) {
  nlohmann::ordered_json splits = nlohmann::ordered_json::array();
  for (const SplitEntry& split : index.splits) {
    nlohmann::ordered_json shards = nlohmann::ordered_json::array();
    for (const ShardEntry& shard : split.shards)
      shards.push_back({{"file", shard.file},
                        {"tokens", shard.tokens},
                        {"checksum", checksum_text(shard.checksum)}});
    splits.push_back({{"name", split.name},
                      {"tokens", split.tokens},
                      {"documents", split.documents},
                      {"text_bytes", split.text_bytes},
                      {"shards", shards}});
  }
  nlohmann::ordered_json document = {{"format", kFormat},
                                     {"version", kIndexVersion},
                                     {"vocabulary", index.vocabulary},
                                     {"token_bytes", index.token_bytes()},
                                     {"end_of_text", index.end_of_text},
                                     {"tokenizer", checksum_text(index.tokenizer)}};
  if (index.tokenizer_rules) document["tokenizer_rules"] = checksum_text(*index.tokenizer_rules);
  for (const TokenizerFileEntry& file : index.tokenizer_files)
    document["tokenizer_files"].push_back(
        {{"file", file.file}, {"bytes", file.bytes}, {"checksum", checksum_text(file.checksum)}});
  document["splits"] = splits;
  return document.dump(2) + "\n";
}

ShardIndex parse_shard_index(std::string_view text, const std::string& name) {
  const JsonObject document = JsonObject::parse(text, name);
  require(document.string("format") == kFormat, "{}: it is not an index of token shards", name);
  const std::uint64_t version = count(document, "version");
  require(version == kIndexVersion, "{}: version {} of the format; this program reads version {}",
          name, version, kIndexVersion);
  ShardIndex index;
  index.vocabulary = static_cast<std::uint64_t>(document.integer("vocabulary", 1, INT32_MAX));
  index.end_of_text = static_cast<TokenId>(count(document, "end_of_text", index.vocabulary - 1));
  index.tokenizer = checksum(document, "tokenizer");
  if (document.has("tokenizer_rules"))
    index.tokenizer_rules = checksum(document, "tokenizer_rules");
  if (document.has("tokenizer_files"))
    for (const JsonObject& file : document.objects("tokenizer_files")) {
      index.tokenizer_files.push_back(
          {file.string("file"), count(file, "bytes"), checksum(file, "checksum")});
      check_file_name(index.tokenizer_files.back().file, name);
    }
  const std::uint64_t token_bytes = count(document, "token_bytes", 8);
  require(token_bytes == static_cast<std::uint64_t>(index.token_bytes()),
          "{}: 'token_bytes' is {}, but a vocabulary of {} takes {}", name, token_bytes,
          index.vocabulary, index.token_bytes());
  std::set<std::string> files;
  for (const JsonObject& item : document.objects("splits")) {
    SplitEntry split = parse_split(item, files);
    for (const SplitEntry& other : index.splits)
      require(other.name != split.name, "{}: split '{}' is listed twice", name,
              printable(split.name));
    index.splits.push_back(std::move(split));
  }
  return index;
}

std::uint64_t tokenizer_fingerprint(const Tokenizer& tokenizer) {
  std::string names;
  for (std::size_t i = 0; i < tokenizer.vocab_size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (tokenizer.has_token(id)) {
      names += tokenizer.is_special(id) ? '\1' : '\2';
      names += tokenizer.token_name(id);
    }
    names += '\0';
  }
  return xxh64(names);
}

bool same_tokenizer(const ShardIndex& one, const ShardIndex& other) {
  return one.tokenizer == other.tokenizer && (!one.tokenizer_rules || !other.tokenizer_rules ||
                                              *one.tokenizer_rules == *other.tokenizer_rules);
}

bool made_by(const ShardIndex& index, const Tokenizer& tokenizer) {
  return index.tokenizer == tokenizer_fingerprint(tokenizer) &&
         index.tokenizer_rules.value_or(tokenizer.rules_fingerprint()) ==
             tokenizer.rules_fingerprint();
}

}  // namespace filigree
