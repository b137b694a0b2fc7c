#include "filigree/text/shard_index.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <charconv>
#include <set>

#include "filigree/base/error.h"
#include "filigree/base/strings.h"
#include "filigree/text/json_document.h"
#include "filigree/text/shard_checksum.h"

namespace filigree {
namespace {

constexpr std::string_view kFormat = "filigree token shards";
constexpr std::uint64_t kVersion = 1;
constexpr std::uint64_t kMostTokens = std::uint64_t{1} << 56;  // sums of it cannot overflow

using Json = nlohmann::json;

// Reads the members of one object; messages say where in the document they are.
class ObjectReader {
 public:
  ObjectReader(const Json& object, std::string place) : object_(object), place_(std::move(place)) {
    require(object.is_object(), "{}: expected an object", place_);
  }

  const Json& member(const char* key) const {
    const auto found = object_.find(key);
    require(found != object_.end(), "{}: '{}' is missing", place_, key);
    return *found;
  }

  std::uint64_t number(const char* key, std::uint64_t most) const {
    const Json& value = member(key);
    require(value.is_number_unsigned() && value.get<std::uint64_t>() <= most,
            "{}: '{}' is not a whole number from 0 to {}", place_, key, most);
    return value.get<std::uint64_t>();
  }

  std::string text(const char* key) const {
    const Json& value = member(key);
    require(value.is_string(), "{}: '{}' is not a text", place_, key);
    return value.get<std::string>();
  }

  std::uint64_t checksum(const char* key) const {
    const std::string digits = text(key);
    std::uint64_t value = 0;
    const char* end = digits.data() + digits.size();
    const auto [stopped, failure] = std::from_chars(digits.data(), end, value, 16);
    require(digits.size() == 16 && failure == std::errc() && stopped == end,
            "{}: '{}' is not 16 hexadecimal digits", place_, key);
    return value;
  }

  const Json& list(const char* key) const {
    const Json& value = member(key);
    require(value.is_array(), "{}: '{}' is not a list", place_, key);
    return value;
  }

  const std::string& place() const { return place_; }

 private:
  const Json& object_;
  std::string place_;
};

// A file of the same folder: an index must not make us read anything else.
void check_file_name(const std::string& file, const std::string& place) {
  require(!file.empty() && file.find_first_of("/\\") == std::string::npos && file != "." &&
              file != ".." && file.find('\0') == std::string::npos,
          "{}: '{}' is not the name of a file in the folder", place, printable(file));
}

SplitEntry parse_split(const Json& json, std::string place, std::set<std::string>& files) {
  const ObjectReader reader(json, std::move(place));
  SplitEntry split;
  split.name = reader.text("name");
  split.tokens = reader.number("tokens", kMostTokens);
  split.documents = reader.number("documents", kMostTokens);
  split.text_bytes = reader.number("text_bytes", kMostTokens);
  std::uint64_t tokens = 0;
  for (const Json& item : reader.list("shards")) {
    const ObjectReader shard(item,
                             fmt::format("{}: shard {}", reader.place(), split.shards.size()));
    split.shards.push_back(
        {shard.text("file"), shard.number("tokens", kMostTokens), shard.checksum("checksum")});
    const ShardEntry& entry = split.shards.back();
    check_file_name(entry.file, shard.place());
    require(files.insert(entry.file).second, "{}: '{}' is listed twice", shard.place(),
            printable(entry.file));
    require(entry.tokens > 0, "{}: it has no tokens", shard.place());
    tokens += entry.tokens;
    require(tokens <= kMostTokens, "{}: too many tokens", shard.place());
  }
  require(tokens == split.tokens, "{}: its shards have {} tokens together, but 'tokens' says {}",
          reader.place(), tokens, split.tokens);
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
  const nlohmann::ordered_json document = {{"format", kFormat},
                                           {"version", kVersion},
                                           {"vocabulary", index.vocabulary},
                                           {"token_bytes", index.token_bytes()},
                                           {"end_of_text", index.end_of_text},
                                           {"tokenizer", checksum_text(index.tokenizer)},
                                           {"splits", splits}};
  return document.dump(2) + "\n";
}

ShardIndex parse_shard_index(std::string_view text, std::string_view name) {
  const Json document = parse_json_document(text, name);
  const ObjectReader reader(document, std::string(name));
  require(reader.text("format") == kFormat, "{}: it is not an index of token shards", name);
  const std::uint64_t version = reader.number("version", UINT32_MAX);
  require(version == kVersion, "{}: version {} of the format; this program reads version {}", name,
          version, kVersion);
  ShardIndex index;
  index.vocabulary = reader.number("vocabulary", std::uint64_t{INT32_MAX});
  require(index.vocabulary > 0, "{}: 'vocabulary' is 0", name);
  index.end_of_text = static_cast<TokenId>(reader.number("end_of_text", index.vocabulary - 1));
  index.tokenizer = reader.checksum("tokenizer");
  const std::uint64_t token_bytes = reader.number("token_bytes", 8);
  require(token_bytes == static_cast<std::uint64_t>(index.token_bytes()),
          "{}: 'token_bytes' is {}, but a vocabulary of {} takes {}", name, token_bytes,
          index.vocabulary, index.token_bytes());
  std::set<std::string> files;
  for (const Json& item : reader.list("splits")) {
    SplitEntry split =
        parse_split(item, fmt::format("{}: split {}", name, index.splits.size()), files);
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

}  // namespace filigree
