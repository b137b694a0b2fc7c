#include "text/added_tokens.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "text/unicode_whitespace.h"
#include "text/word_table.h"

namespace filigree {
namespace {

// Where the white space that ends text[0, end) begins, looking no further back than `lowest`.
std::size_t whitespace_begin(std::string_view text, std::size_t lowest, std::size_t end) {
  std::size_t begin = end;
  while (begin > lowest) {
    std::size_t character = begin - 1;
    while (character > lowest && continues_utf8(text[character])) --character;
    if (!is_unicode_whitespace(utf8_sequence(text.substr(character)).code)) break;
    begin = character;
  }
  return begin;
}

// Where the white space that begins at `begin` ends.
std::size_t whitespace_end(std::string_view text, std::size_t begin) {
  std::size_t end = begin;
  while (end < text.size()) {
    const Utf8Sequence next = utf8_sequence(text.substr(end));
    if (!is_unicode_whitespace(next.code)) break;
    end += next.length;
  }
  return end;
}

}  // namespace

void LiteralMatcher::add(std::string_view content, std::uint32_t value) {
  begins_[static_cast<unsigned char>(content[0])] = true;
  std::uint32_t node = 0;
  for (const char byte : content) {
    const std::uint64_t child =
        children_.insert(node, static_cast<unsigned char>(byte), node_count_);
    if (child == node_count_) {
      ++node_count_;
      values_.push_back(kNoValue);
    }
    node = static_cast<std::uint32_t>(child);
  }
  values_[node] = value;
}

bool LiteralMatcher::find(std::string_view text, std::size_t from, Match& match) const {
  for (std::size_t begin = from; begin < text.size(); ++begin) {
    if (!begins_[static_cast<unsigned char>(text[begin])]) continue;
    bool found = false;
    std::uint32_t node = 0;
    for (std::size_t i = begin; i < text.size(); ++i) {
      const std::uint64_t* child = children_.find(node, static_cast<unsigned char>(text[i]));
      if (child == nullptr) break;
      node = static_cast<std::uint32_t>(*child);
      if (values_[node] != kNoValue) {
        found = true;
        match = {begin, i + 1 - begin, values_[node]};
      }
    }
    if (found) return true;
  }
  return false;
}

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, std::vector<NormalizerStep> steps)
    : tokens_(std::move(tokens)), steps_(std::move(steps)) {
  WordTable contents;
  for (std::uint32_t i = 0; i < tokens_.size(); ++i) {
    const AddedToken& token = tokens_[i];
    if (token.content.empty()) fail("added token with id {}: its content is empty", token.id);
    if (token.content.size() > kMaxAddedTokenBytes)
      fail("added token '{}': {} bytes long; at most {} are supported", printable(token.content),
           token.content.size(), kMaxAddedTokenBytes);
    if (!is_valid_utf8(token.content))
      fail("added token '{}': not valid UTF-8", printable(token.content));
    if (contents.intern(token.content) != i)
      fail("added token '{}' is listed twice", printable(token.content));
    if (!token.normalized)
      raw_.add(token.content, i);
    else if (const std::string content = normalize(steps_, token.content); !content.empty())
      normalized_.add(content, i);
  }
}

std::vector<TextSegment> AddedTokens::split(std::string_view text, bool recognise_special,
                                            std::deque<std::string>& storage) const {
  std::vector<TextSegment> segments;
  split_by(raw_, text, recognise_special, segments);
  for (TextSegment& segment : segments) segment.first = segment.text.data() == text.data();
  if (!steps_.empty())
    for (TextSegment& segment : segments)
      if (segment.id == TextSegment::kText)
        segment.text = storage.emplace_back(normalize(steps_, segment.text));
  if (normalized_.empty()) return segments;
  std::vector<TextSegment> parts;
  for (const TextSegment& segment : segments) {
    if (segment.id != TextSegment::kText) {
      parts.push_back(segment);
      continue;
    }
    const std::size_t before = parts.size();
    split_by(normalized_, segment.text, recognise_special, parts);
    for (std::size_t p = before; p < parts.size(); ++p)
      parts[p].first = segment.first && parts[p].text.data() == segment.text.data();
  }
  return parts;
}

void AddedTokens::split_by(const LiteralMatcher& matcher, std::string_view text,
                           bool recognise_special, std::vector<TextSegment>& segments) const {
  std::size_t done = 0;    // text up to here is in `segments`
  std::size_t search = 0;  // matches up to here have been considered
  LiteralMatcher::Match match;
  while (!matcher.empty() && matcher.find(text, search, match)) {
    search = match.begin + match.length;
    const AddedToken& token = tokens_[match.value];
    if (token.special && !recognise_special) continue;
    std::size_t begin = match.begin;
    std::size_t end = search;
    if (token.strip_left && begin > done) begin = whitespace_begin(text, done, begin);
    if (token.strip_right) end = whitespace_end(text, end);
    if (begin > done) segments.push_back({text.substr(done, begin - done)});
    segments.push_back({text.substr(match.begin, match.length), token.id});
    done = std::max(done, end);
  }
  if (done < text.size()) segments.push_back({text.substr(done)});
}

}  // namespace filigree
