#include "text/bpe_model.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "base/utf8.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "text/byte_level.h"

namespace filigree {
namespace {

// Up to here looking at all pairs for the best one is quicker than keeping a heap.
constexpr std::size_t kFewSymbols = 32;

TokenId result_of(std::uint64_t merge) { return static_cast<TokenId>(merge & 0xFFFFFFFFu); }
std::uint32_t rank_of(std::uint64_t merge) { return static_cast<std::uint32_t>(merge >> 32); }

}  // namespace

BpeModel::BpeModel(Vocabulary vocabulary, const std::vector<MergeRule>& rules,
                   std::string_view rules_name, BpeSettings settings)
    : vocabulary_(std::move(vocabulary)), settings_(std::move(settings)), merges_(rules.size()) {
  rules_.reserve(rules.size());
  std::string whole;
  for (const MergeRule& rule : rules) {
    const auto id_of = [&](std::string_view token) {
      const std::optional<TokenId> id = vocabulary_.find(token);
      if (!id)
        fail("{} {}: the merge of '{}' and '{}' names '{}', which is not in the vocabulary",
             rules_name, rule.place, printable(rule.left), printable(rule.right), printable(token));
      return *id;
    };
    const TokenId left = id_of(rule.left);
    const TokenId right = id_of(rule.right);
    whole.assign(rule.left).append(rule.right);
    const TokenId result = id_of(whole);
    const std::uint64_t merge = (std::uint64_t{rules_.size()} << 32) |
                                static_cast<std::uint64_t>(static_cast<std::uint32_t>(result));
    merges_.insert(static_cast<std::uint32_t>(left), static_cast<std::uint32_t>(right), merge) =
        merge;
    rules_.emplace_back(left, right);
  }
  for (std::size_t byte = 0; byte < byte_tokens_.size(); ++byte) {
    const auto name = settings_.characters
                          ? fmt::format("<0x{:02X}>", byte)
                          : std::string(byte_level_character(static_cast<std::uint8_t>(byte)));
    byte_tokens_[byte] = vocabulary_.find(name).value_or(kNoToken);
  }
  if (settings_.unknown_token)
    unknown_ = vocabulary_.find(*settings_.unknown_token).value_or(kNoToken);
}

void BpeModel::encode_word(std::string_view word, std::vector<TokenId>& ids) const {
  if (settings_.ignore_merges) {
    const std::optional<TokenId> id =
        vocabulary_.find(settings_.characters ? std::string(word) : to_byte_level(word));
    if (id) {
      ids.push_back(*id);
      return;
    }
  }
  const std::size_t begin = ids.size();
  if (settings_.characters)
    append_characters(word, ids);
  else
    append_byte_tokens(word, ids);
  if (ids.size() - begin <= kFewSymbols)
    merge_few(ids, begin);
  else
    merge_many(ids, begin);
}

void BpeModel::append_byte_tokens(std::string_view word, std::vector<TokenId>& ids) const {
  bool after_unknown = false;
  for (const char character : word) {
    const auto byte = static_cast<unsigned char>(character);
    const TokenId id = byte_tokens_[byte];
    if (id != kNoToken) {
      ids.push_back(id);
    } else if (unknown_ == kNoToken) {
      fail("encode: the vocabulary has no token '{}' for byte 0x{:02X} and no unknown token",
           byte_level_character(byte), byte);
    } else if (!after_unknown || !settings_.fuse_unknown) {
      ids.push_back(unknown_);
    }
    after_unknown = id == kNoToken;
  }
}

void BpeModel::append_characters(std::string_view word, std::vector<TokenId>& ids) const {
  bool after_unknown = false;
  while (!word.empty()) {
    const std::string_view character = word.substr(0, utf8_sequence(word).length);
    word.remove_prefix(character.size());
    if (const std::optional<TokenId> id = vocabulary_.find(character)) {
      ids.push_back(*id);
      after_unknown = false;
      continue;
    }
    const auto has_token = [&](char c) {
      return byte_tokens_[static_cast<unsigned char>(c)] != kNoToken;
    };
    if (settings_.byte_fallback && std::ranges::all_of(character, has_token)) {
      for (const char c : character) ids.push_back(byte_tokens_[static_cast<unsigned char>(c)]);
      after_unknown = false;
      continue;
    }
    if (unknown_ == kNoToken)
      fail("encode: the vocabulary has no token for '{}' and no unknown token",
           printable(character));
    if (!after_unknown || !settings_.fuse_unknown) ids.push_back(unknown_);
    after_unknown = true;
  }
}

void BpeModel::merge_few(std::vector<TokenId>& ids, std::size_t begin) const {
  std::size_t count = ids.size() - begin;
  TokenId* symbols = ids.data() + begin;
  std::array<std::uint64_t, kFewSymbols> merges;  // merges[i]: the rule for symbols i and i + 1
  for (std::size_t i = 0; i + 1 < count; ++i) merges[i] = merge_of(symbols[i], symbols[i + 1]);
  while (count > 1) {
    const auto best = std::min_element(merges.begin(), merges.begin() + (count - 1));
    if (*best == kNoMerge) break;
    const auto at = static_cast<std::size_t>(best - merges.begin());
    symbols[at] = result_of(*best);
    std::copy(symbols + at + 2, symbols + count, symbols + at + 1);
    std::copy(merges.begin() + at + 1, merges.begin() + (count - 1), merges.begin() + at);
    --count;
    if (at > 0) merges[at - 1] = merge_of(symbols[at - 1], symbols[at]);
    if (at + 1 < count) merges[at] = merge_of(symbols[at], symbols[at + 1]);
  }
  ids.resize(begin + count);
}

void BpeModel::merge_many(std::vector<TokenId>& ids, std::size_t begin) const {
  const std::size_t count = ids.size() - begin;
  constexpr std::uint32_t kEnd = UINT32_MAX;
  if (count >= kEnd) fail("encode: a word of {} bytes; at most {} are supported", count, kEnd - 1);
  TokenId* symbols = ids.data() + begin;
  // Symbols form a list; a merged-away one becomes kNoToken.
  std::vector<std::uint32_t> previous(count);
  std::vector<std::uint32_t> following(count);
  // Rank in the upper half, position of the left symbol in the lower. An entry whose pair has
  // changed since is recognised by its rank: a symbol only ever grows, so a pair never comes back.
  std::vector<std::uint64_t> candidates;
  const auto entry_of = [&](std::uint32_t left, std::uint32_t right) {
    const std::uint64_t merge = merge_of(symbols[left], symbols[right]);
    return merge == kNoMerge ? kNoMerge : (std::uint64_t{rank_of(merge)} << 32) | left;
  };
  for (std::uint32_t i = 0; i < count; ++i) {
    previous[i] = i == 0 ? kEnd : i - 1;
    following[i] = i + 1 == count ? kEnd : i + 1;
    if (i + 1 == count) break;
    const std::uint64_t entry = entry_of(i, i + 1);
    if (entry != kNoMerge) candidates.push_back(entry);
  }
  std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>> queue(
      std::greater<>(), std::move(candidates));
  while (!queue.empty()) {
    const std::uint64_t entry = queue.top();
    queue.pop();
    const auto left = static_cast<std::uint32_t>(entry & 0xFFFFFFFFu);
    if (symbols[left] == kNoToken || following[left] == kEnd) continue;
    const std::uint32_t right = following[left];
    const std::uint64_t merge = merge_of(symbols[left], symbols[right]);
    if (merge == kNoMerge || rank_of(merge) != rank_of(entry)) continue;
    symbols[left] = result_of(merge);
    symbols[right] = kNoToken;
    const std::uint32_t after = following[right];
    following[left] = after;
    if (after != kEnd) {
      previous[after] = left;
      if (const std::uint64_t next = entry_of(left, after); next != kNoMerge) queue.push(next);
    }
    if (const std::uint32_t before = previous[left]; before != kEnd)
      if (const std::uint64_t next = entry_of(before, left); next != kNoMerge) queue.push(next);
  }
  const auto merged_away =
      std::remove(ids.begin() + static_cast<std::ptrdiff_t>(begin), ids.end(), kNoToken);
  ids.erase(merged_away, ids.end());
}

}  // namespace filigree
