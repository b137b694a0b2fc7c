// A text that tasks are drawn from, with the places of its words and sentences: any prose will do,
// best such that the model was not trained on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace filigree {

// Of a longer text the beginning is read: enough for some thousand passages of every kind.
inline constexpr std::size_t kMostTaskTextBytes = std::size_t{16} << 20;

// Longer passages would cost more than they show: attention maps grow with the square.
inline constexpr std::size_t kMostPassageBytes = 320;

struct TextWord {
  std::uint32_t begin = 0, end = 0;  // bytes of the document
  bool begins_sentence = false;
};

struct TextDocument {
  std::string text = {};
  std::vector<TextWord> words = {};  // letters, with apostrophes and hyphens between them

  std::string_view word(std::size_t i) const;
  // What is between word i - 1, or the beginning, and word i.
  std::string_view before(std::size_t i) const;
  // The first word of a passage that begins with the sentence of word `from` and goes on to word
  // `end`; nothing where that is longer than passages may be.
  std::optional<std::size_t> passage_begin(std::size_t from, std::size_t end) const;
};

struct TaskText {
  std::string source = {};  // for messages
  std::vector<TextDocument> documents = {};

  std::size_t word_count() const;
};

TextDocument scan_document(std::string text);

// Documents are separated by <|endoftext|>; plain, .xz or .zst. Throws Error when the file cannot
// be read or is not UTF-8.
TaskText read_task_text(const std::filesystem::path& file);

// How often each word occurs, "The" apart from "the". The views are into the text.
using WordFrequencies = std::unordered_map<std::string_view, std::uint32_t>;
WordFrequencies count_words(const TaskText& text);

bool is_capital(char letter);
// With ASCII capitals made small.
std::string in_small_letters(std::string_view word);

}  // namespace filigree
