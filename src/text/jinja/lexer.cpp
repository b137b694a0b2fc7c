#include "text/jinja/lexer.h"

#include <algorithm>
#include <charconv>

#include "base/utf8.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "text/jinja/jinja.h"

namespace filigree::jinja {
namespace {

constexpr std::string_view kWhite = " \t\n\r\f\v";

bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "\r\n" and "\r" are "\n", and one at the end is not part of the template.
std::string with_plain_lines(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text += source[i];
    } else {
      text += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : text_(with_plain_lines(source)) {}

  std::vector<Token> run() {
    while (at_ < text_.size()) {
      const std::size_t begin = next_tag();
      const char sign = begin < text_.size() ? text_[begin + 1] : ' ';
      add_text(begin, sign);
      if (begin == text_.size()) break;
      at_ = begin + 2;
      if (at_ < text_.size() && (text_[at_] == '-' || text_[at_] == '+')) ++at_;
      if (sign == '#')
        skip_comment();
      else
        read_tag(sign == '{');
    }
    tokens_.push_back({Token::Kind::kEnd, "the end of the template", 0, line_at(text_.size())});
    return std::move(tokens_);
  }

 private:
  std::size_t next_tag() const {
    for (std::size_t i = at_; i + 1 < text_.size(); ++i)
      if (text_[i] == '{' && (text_[i + 1] == '{' || text_[i + 1] == '%' || text_[i + 1] == '#'))
        return i;
    return text_.size();
  }

  // What stands before a tag that begins at `begin`, with the white space that it strips.
  void add_text(std::size_t begin, char sign) {
    std::string_view text = std::string_view(text_).substr(at_, begin - at_);
    const char mark = begin + 2 < text_.size() ? text_[begin + 2] : ' ';
    if (begin < text_.size() && mark == '-') {
      const std::size_t last = text.find_last_not_of(kWhite);
      text = text.substr(0, last == std::string_view::npos ? 0 : last + 1);
    } else if (begin < text_.size() && sign != '{' && mark != '+') {
      const std::size_t line = text.rfind('\n');
      const std::size_t start = line == std::string_view::npos ? 0 : line + 1;
      const bool begins_line = line != std::string_view::npos || line_starts_;
      if (begins_line && text.find_first_not_of(kWhite, start) == std::string_view::npos)
        text = text.substr(0, start);
    }
    if (!text.empty()) tokens_.push_back({Token::Kind::kText, std::string(text), 0, line_at(at_)});
  }

  // Behind a tag that ends at `at_`: the white space that it strips.
  void pass_white(bool strips, bool block) {
    const std::size_t before = at_;
    if (strips)
      at_ = std::min(text_.find_first_not_of(kWhite, at_), text_.size());
    else if (block && at_ < text_.size() && text_[at_] == '\n')
      ++at_;
    line_starts_ = at_ > before && text_[at_ - 1] == '\n';
  }

  void skip_comment() {
    const std::size_t end = text_.find("#}", at_);
    if (end == std::string::npos) wrong("a comment has no end");
    const bool strips = end > at_ && text_[end - 1] == '-';
    at_ = end + 2;
    pass_white(strips, true);
  }

  void read_tag(bool output) {
    const std::string_view end = output ? "}}" : "%}";
    add(output ? Token::Kind::kOutputBegin : Token::Kind::kBlockBegin, output ? "{{" : "{%");
    int open = 0;
    while (true) {
      at_ = std::min(text_.find_first_not_of(kWhite, at_), text_.size());
      if (at_ == text_.size()) wrong(fmt::format("no '{}' ends what begins here", end));
      const std::string_view rest = std::string_view(text_).substr(at_);
      const bool strips = rest.starts_with('-') && rest.substr(1).starts_with(end);
      const bool keeps = rest.starts_with('+') && rest.substr(1).starts_with(end);
      if (open == 0 && (strips || keeps || rest.starts_with(end))) {
        add(output ? Token::Kind::kOutputEnd : Token::Kind::kBlockEnd, std::string(end));
        at_ += strips || keeps ? 3 : 2;
        pass_white(strips, !output && !keeps);
        return;
      }
      const char c = rest[0];
      open += c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1 : 0;
      if (is_name_start(c))
        read_name();
      else if (is_digit(c))
        read_integer();
      else if (c == '\'' || c == '"')
        read_string(c);
      else
        read_sign(rest);
    }
  }

  void read_name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_name_start(text_[at_]) || is_digit(text_[at_]))) ++at_;
    add(Token::Kind::kName, text_.substr(begin, at_ - begin));
  }

  void read_integer() {
    std::int64_t value = 0;
    const char* const end = text_.data() + text_.size();
    const auto [stop, failed] = std::from_chars(text_.data() + at_, end, value);
    if (failed != std::errc() ||
        (stop < end && *stop == '.' && stop + 1 < end && is_digit(stop[1])))
      wrong("a number is no integer that is supported");
    at_ = static_cast<std::size_t>(stop - text_.data());
    add(Token::Kind::kInteger, fmt::format("{}", value));
    tokens_.back().integer = value;
  }

  void read_string(char quote) {
    std::string value;
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (text_[at_] != '\\') {
        value += text_[at_];
        continue;
      }
      if (++at_ == text_.size()) break;
      switch (text_[at_]) {
        case 'n': value += '\n'; break;
        case 't': value += '\t'; break;
        case 'r': value += '\r'; break;
        case '\n': break;
        case '\\':
        case '\'':
        case '"': value += text_[at_]; break;
        case 'u': value += code_point(); break;
        default:
          if (is_name_start(text_[at_]) || is_digit(text_[at_]))
            wrong(fmt::format("'\\{}' in a text is not supported", text_[at_]));
          value += '\\';  // as Python leaves what it does not know
          value += text_[at_];
      }
    }
    if (at_ == text_.size()) wrong("a text has no end");
    ++at_;
    add(Token::Kind::kString, std::move(value));
  }

  // Of "u2581"; stays on its last digit.
  std::string code_point() {
    std::uint32_t code = 0;
    const char* const begin = text_.data() + at_ + 1;
    const char* const end = text_.data() + std::min(text_.size(), at_ + 5);
    const auto [stop, failed] = std::from_chars(begin, end, code, 16);
    if (failed != std::errc() || stop != begin + 4 || (code >= 0xD800 && code < 0xE000))
      wrong("'\\u' is not followed by a character's four hexadecimal digits");
    at_ += 4;
    std::string text;
    append_utf8(text, code);
    return text;
  }

  void read_sign(std::string_view rest) {
    for (const std::string_view sign :
         {"==", "!=", "<=", ">=", "//", "**", "(", ")", "[", "]", "{", "}", ",",
          ":",  ".",  "|",  "+",  "-",  "*",  "/", "%", "~", "<", ">", "="}) {
      if (!rest.starts_with(sign)) continue;
      add(Token::Kind::kSign, std::string(sign));
      at_ += sign.size();
      return;
    }
    wrong(fmt::format("'{}' has no meaning here", printable(rest.substr(0, 1))));
  }

  void add(Token::Kind kind, std::string text) {
    tokens_.push_back({kind, std::move(text), 0, line_at(at_)});
  }

  // Grows with `place`, so that lines are counted once.
  std::size_t line_at(std::size_t place) {
    for (; counted_ < place && counted_ < text_.size(); ++counted_)
      if (text_[counted_] == '\n') ++line_;
    return line_;
  }

  [[noreturn]] void wrong(const std::string& what) {
    fail("chat template: line {}: {}", line_at(at_), what);
  }

  std::string text_;
  std::size_t at_ = 0;
  bool line_starts_ = true;  // what follows the last tag begins a line
  std::size_t counted_ = 0, line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view source) {
  require(source.size() <= kMaxTemplateBytes, "chat template: {} bytes long; the limit is {}",
          source.size(), kMaxTemplateBytes);
  const std::size_t bad = first_invalid_utf8(source);
  require(bad == source.size(), "chat template: not valid UTF-8 at byte {}", bad);
  return Lexer(source).run();
}

}  // namespace filigree::jinja
