// Cuts text into the words that byte-level BPE merges within, by GPT-2's pattern
//
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// or by one that Llama 3 and Qwen 2 share but for the number of digits in a word,
//
//   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*
//   |\s*[\r\n]+|\s+(?!\S)|\s+
//
// or, as StarCoder and SmolLM do, by GPT-2's after every digit was made a word of its own. \s is
// Unicode White_Space. Every character is a letter, a number, white space or something
// else, so the words cover the text without gaps.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace filigree {

enum class SplitPattern { kGpt2, kLlama3, kQwen2, kDigitsThenGpt2 };

// The pattern that tokenizer.json writes so, if it is one of these.
std::optional<SplitPattern> split_pattern(std::string_view regex);
// And back; of kDigitsThenGpt2, which tokenizer.json writes in two steps, the second.
std::string regex_of(SplitPattern pattern);

// Gives the words of one text in order. Any number of scanners may run at the same time.
class PreTokenScanner {
 public:
  // `text` must be well-formed UTF-8 and outlive the scanner.
  explicit PreTokenScanner(std::string_view text, SplitPattern pattern = SplitPattern::kGpt2)
      : text_(text), pattern_(pattern) {}

  // False at the end of the text.
  bool next(std::string_view& word);

 private:
  std::string_view text_;
  SplitPattern pattern_;
  std::size_t at_ = 0;
};

// Of GPT-2's pattern: the first place p >= from, p >= 1, where `text` can be cut such that the
// words of text[0, p) and those of text[p, end) together are exactly the words of `text`;
// text.size() when there is none.
//
// The place is before a white-space character that a character other than white space follows. Why
// that is safe: let W be the maximal run of white space that ends with that character. No word goes
// on from another character into white space, so some word begins where W begins.
//   - |W| = 1: p is where W begins. The word before it ends with a character that is not white
//     space, and no alternative for such words looks ahead: it is the same when the text ends at p.
//   - |W| > 1: at the start of W only \s+(?!\S) matches; it takes all of W but the last character,
//     which a non-space follows, and so ends at p. When the text ends at p, it takes the same.
// Matching goes on at p either way, and the pattern never looks back.
std::size_t pre_token_border(std::string_view text, std::size_t from);

}  // namespace filigree
