#include <algorithm>
#include <array>

#include "filigree/tasks.h"
#include "text/text_source.h"

namespace filigree {
namespace {

std::size_t bytes_of_character(unsigned first) {
  return first < 0x80 ? 1 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
}

// Bytes of the letter at `at`, 0 when there is none. Characters outside ASCII count as letters but
// for punctuation: U+2000 to U+207F, and U+0080 to U+00BF.
std::size_t letter_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned first = byte(at);
  if (first < 0x80) return (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z') ? 1 : 0;
  if ((first == 0xE2 && (byte(at + 1) == 0x80 || byte(at + 1) == 0x81)) || first == 0xC2) return 0;
  return bytes_of_character(first);
}

bool is_joint(char c) { return c == '\'' || c == '-'; }

// After these a full stop ends no sentence.
bool is_abbreviation(std::string_view word) {
  constexpr std::array<std::string_view, 12> kShort = {"Mr", "Mrs", "Ms",  "Dr",  "St",   "Prof",
                                                       "Sr", "Jr",  "Rev", "Col", "Capt", "vs"};
  return word.size() == 1 || std::find(kShort.begin(), kShort.end(), word) != kShort.end();
}

bool ends_sentence(std::string_view between, std::string_view last_word, char next) {
  if (between.find("\n\n") != std::string_view::npos) return true;
  const std::size_t stop = between.find_first_of(".!?");
  if (stop == std::string_view::npos || !is_capital(next)) return false;
  if (between.find_first_of(" \n", stop) == std::string_view::npos) return false;
  return between[stop] != '.' || !is_abbreviation(last_word);
}

}  // namespace

bool is_capital(char letter) { return letter >= 'A' && letter <= 'Z'; }

std::string in_small_letters(std::string_view word) {
  std::string small(word);
  for (char& letter : small)
    if (is_capital(letter)) letter = static_cast<char>(letter - 'A' + 'a');
  return small;
}

std::string_view TextDocument::word(std::size_t i) const {
  return std::string_view(text).substr(words[i].begin, words[i].end - words[i].begin);
}

std::string_view TextDocument::before(std::size_t i) const {
  const std::size_t begin = i == 0 ? 0 : words[i - 1].end;
  return std::string_view(text).substr(begin, words[i].begin - begin);
}

std::optional<std::size_t> TextDocument::passage_begin(std::size_t from, std::size_t end) const {
  std::size_t i = from;
  while (words[end].begin - words[i].begin <= kMostPassageBytes) {
    if (words[i].begins_sentence) return i;
    --i;
  }
  return std::nullopt;
}

std::size_t TaskText::word_count() const {
  std::size_t count = 0;
  for (const TextDocument& document : documents) count += document.words.size();
  return count;
}

TextDocument scan_document(std::string text) {
  TextDocument document;
  document.text = std::move(text);
  const std::string_view all = document.text;
  for (std::size_t at = 0; at < all.size();) {
    std::size_t length = letter_at(all, at);
    if (length == 0) {
      at += bytes_of_character(static_cast<unsigned char>(all[at]));
      continue;
    }
    const std::size_t begin = at;
    while (length > 0) {
      at = std::min(at + length, all.size());
      length = letter_at(all, at);
      if (length == 0 && at < all.size() && is_joint(all[at]) && letter_at(all, at + 1) > 0)
        length = 1;
    }
    document.words.push_back(
        {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(at), false});
    const std::size_t i = document.words.size() - 1;
    document.words[i].begins_sentence =
        i == 0 || ends_sentence(document.before(i), document.word(i - 1), all[begin]);
  }
  return document;
}

TaskText read_task_text(const std::filesystem::path& file) {
  TaskText text;
  text.source = file.string();
  TextSource source(file);
  std::size_t bytes = 0;
  for (TextPiece piece; bytes < kMostTaskTextBytes && source.next(piece);) {
    bytes += piece.text.size();
    text.documents.push_back(scan_document(std::move(piece.text)));
  }
  return text;
}

WordFrequencies count_words(const TaskText& text) {
  WordFrequencies counts;
  for (const TextDocument& document : text.documents)
    for (std::size_t i = 0; i < document.words.size(); ++i) ++counts[document.word(i)];
  return counts;
}

}  // namespace filigree
