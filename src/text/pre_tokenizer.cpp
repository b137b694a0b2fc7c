#include "text/pre_tokenizer.h"

#include <algorithm>
#include <memory>
#include <string>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/lack_of_memory.h"
#include "filigree/error.h"

namespace filigree {
namespace {

// White_Space spelled out: PCRE2's \s also takes U+180E, which stopped being white space in
// Unicode 6.3.
#define FILIGREE_WHITE_SPACE                                                         \
  "\\x{9}-\\x{D}\\x{20}\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}" \
  "\\x{202F}\\x{205F}\\x{3000}"

#define FILIGREE_SPACES_AT_THE_END \
  "[" FILIGREE_WHITE_SPACE "]+(?![^" FILIGREE_WHITE_SPACE "])|[" FILIGREE_WHITE_SPACE "]+"
#define FILIGREE_LLAMA_PATTERN(digits)                                          \
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}" digits    \
  "| ?[^" FILIGREE_WHITE_SPACE "\\p{L}\\p{N}]+[\\r\\n]*|[" FILIGREE_WHITE_SPACE \
  "]*[\\r\\n]+|" FILIGREE_SPACES_AT_THE_END

// By SplitPattern.
constexpr std::string_view kPatterns[] = {
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" FILIGREE_WHITE_SPACE
    "\\p{L}\\p{N}]+|" FILIGREE_SPACES_AT_THE_END,
    FILIGREE_LLAMA_PATTERN("{1,3}"), FILIGREE_LLAMA_PATTERN(""),
    // White space in front of a digit ends where the text does.
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+|\\p{N}| ?[^" FILIGREE_WHITE_SPACE
    "\\p{L}\\p{N}]+|[" FILIGREE_WHITE_SPACE "]+(?![^" FILIGREE_WHITE_SPACE
    "\\p{N}])|[" FILIGREE_WHITE_SPACE "]+"};

#undef FILIGREE_LLAMA_PATTERN
#undef FILIGREE_SPACES_AT_THE_END
#undef FILIGREE_WHITE_SPACE

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatchData {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};

std::string pcre2_message(int code) {
  PCRE2_UCHAR message[256] = {};
  pcre2_get_error_message(code, message, sizeof(message));
  return reinterpret_cast<const char*>(message);
}

// Compiled on first use: commands that never tokenize must not pay for it.
const pcre2_code* compiled(SplitPattern pattern) {
  using Code = std::unique_ptr<pcre2_code, FreeCode>;
  const auto compile = [](std::string_view text) {
    int error = 0;
    PCRE2_SIZE offset = 0;
    Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                            PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &error, &offset, nullptr));
    if (!code)
      fail("pre-tokenizer: PCRE2 refuses the pattern at {}: {}", offset, pcre2_message(error));
    // Where there is no JIT, pcre2_match interprets the pattern: slower, the same words.
    pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
    return code;
  };
  switch (pattern) {
    case SplitPattern::kLlama3: {
      static const Code code = compile(kPatterns[1]);
      return code.get();
    }
    case SplitPattern::kQwen2: {
      static const Code code = compile(kPatterns[2]);
      return code.get();
    }
    case SplitPattern::kDigitsThenGpt2: {
      static const Code code = compile(kPatterns[3]);
      return code.get();
    }
    case SplitPattern::kGpt2: break;
  }
  static const Code code = compile(kPatterns[0]);
  return code.get();
}

pcre2_match_data* match_data() {
  thread_local const std::unique_ptr<pcre2_match_data, FreeMatchData> data(
      pcre2_match_data_create(1, nullptr));
  if (!data) throw LackOfMemory("pre-tokenizer: cannot match a text");
  return data.get();
}

bool is_ascii_whitespace(char byte) {
  return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

}  // namespace

std::string regex_of(SplitPattern pattern) {
  const auto llama = [](std::string_view digits) {
    std::string regex = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}";
    regex += digits;
    return regex + "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
  };
  if (pattern == SplitPattern::kLlama3) return llama("{1,3}");
  if (pattern == SplitPattern::kQwen2) return llama("");
  return "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
}

std::optional<SplitPattern> split_pattern(std::string_view regex) {
  for (const SplitPattern known :
       {SplitPattern::kGpt2, SplitPattern::kLlama3, SplitPattern::kQwen2})
    if (regex == regex_of(known)) return known;
  return std::nullopt;
}

bool PreTokenScanner::next(std::string_view& word) {
  if (at_ == text_.size()) return false;
  pcre2_match_data* data = match_data();
  const int matched = pcre2_match(compiled(pattern_), reinterpret_cast<PCRE2_SPTR>(text_.data()),
                                  text_.size(), at_, PCRE2_NO_UTF_CHECK, data, nullptr);
  if (matched < 0)
    fail("pre-tokenizer: no word at byte {} of {}: {}", at_, text_.size(), pcre2_message(matched));
  const std::size_t end = pcre2_get_ovector_pointer(data)[1];
  word = text_.substr(at_, end - at_);
  at_ = end;
  return true;
}

std::size_t pre_token_border(std::string_view text, std::size_t from) {
  // ASCII on both sides is enough: one byte tells what each character is, and every real text has
  // such a place every few words.
  for (std::size_t p = std::max<std::size_t>(from, 1); p + 1 < text.size(); ++p)
    if (is_ascii_whitespace(text[p]) && text[p + 1] > ' ' && text[p + 1] < '\x7F') return p;
  return text.size();
}

}  // namespace filigree
