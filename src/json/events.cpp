#include "json/events.h"

#include <nlohmann/json.hpp>

#include <iterator>
#include <utility>

#include "base/utf8.h"
#include "filigree/names.h"

namespace filigree {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMessageLimit = 300;

// Iterates over the text and counts what was read, because the parser tells its position only with
// a syntax error.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, std::size_t* consumed) : at_(at), consumed_(consumed) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*consumed_;
    return *this;
  }
  CountingIterator operator++(int) {
    const CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  std::size_t* consumed_;
};

}  // namespace

// What the parser calls: counts, compares with the limits, and passes on.
class JsonEvents::Gate {
 public:
  explicit Gate(JsonEvents& events) : events_(events), limits_(events.limits_) {}

  bool null() {
    count();
    events_.null();
    return true;
  }
  bool boolean(bool value) {
    count();
    events_.boolean(value);
    return true;
  }
  bool number_integer(Json::number_integer_t value) {
    count();
    events_.negative(value);
    return true;
  }
  bool number_unsigned(Json::number_unsigned_t value) {
    count();
    events_.natural(value);
    return true;
  }
  bool number_float(Json::number_float_t value, const std::string& spelling) {
    count();
    events_.real(value, spelling);
    return true;
  }
  bool string(std::string& value) {
    count();
    check_length(value);
    events_.string(std::move(value));
    return true;
  }
  bool binary(Json::binary_t&) { events_.refuse("binary values are not JSON"); }
  bool key(std::string& name) {
    check_length(name);
    events_.key(std::move(name));
    return true;
  }
  bool start_object(std::size_t) {
    enter();
    events_.begin_object();
    return true;
  }
  bool end_object() {
    --depth_;
    events_.end_object();
    return true;
  }
  bool start_array(std::size_t) {
    enter();
    events_.begin_array();
    return true;
  }
  bool end_array() {
    --depth_;
    events_.end_array();
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const Json::exception& error) {
    // The parser's text begins with its own "[json.exception...] ", which helps no reader, and ends
    // with the last token, which may be as long as the file.
    std::string_view message = error.what();
    const std::size_t bracket = message.find("] ");
    if (bracket != std::string_view::npos) message.remove_prefix(bracket + 2);
    const std::string why = printable(message, kMessageLimit);
    if (position > events_.text_.size())
      throw JsonCutShort(fmt::format("{}: byte {}: {}", events_.label_, events_.text_.size(), why));
    events_.refuse_at(position > 0 ? position - 1 : 0, why);
  }

 private:
  void count() {
    if (++values_ > limits_.max_values)
      events_.refuse(fmt::format("more than {} values, the limit", limits_.max_values));
  }
  void check_length(const std::string& text) const {
    if (text.size() > limits_.max_string_bytes)
      events_.refuse(fmt::format("a string of {} bytes, the limit is {}", text.size(),
                                 limits_.max_string_bytes));
  }
  void enter() {
    count();
    if (++depth_ > limits_.max_depth)
      events_.refuse(fmt::format("nested more than {} levels deep, the limit", limits_.max_depth));
  }

  JsonEvents& events_;
  const JsonLimits& limits_;
  std::size_t values_ = 0;
  std::size_t depth_ = 0;
};

JsonEvents::JsonEvents(std::string label, std::string_view text, const JsonLimits& limits)
    : label_(std::move(label)), text_(text), limits_(limits) {}

void JsonEvents::run() {
  if (text_.size() > limits_.max_bytes)
    fail("{}: {} bytes long, the limit is {}", label_, text_.size(), limits_.max_bytes);
  const std::size_t nul = text_.find('\0');
  if (nul != std::string_view::npos) refuse_at(nul, "a NUL byte, which no JSON text holds");
  const std::size_t valid = first_invalid_utf8(text_);
  const bool cut_inside_a_character =
      valid < text_.size() &&
      utf8_sequence(text_.substr(valid)).kind == Utf8Sequence::Kind::kIncomplete;
  const std::string invalid = "invalid UTF-8, which no JSON text holds";
  if (valid < text_.size() && !cut_inside_a_character) refuse_at(valid, invalid);
  text_ = text_.substr(0, valid);

  consumed_ = 0;
  Gate gate(*this);
  Json::sax_parse(CountingIterator(text_.data(), &consumed_),
                  CountingIterator(text_.data() + text_.size(), &consumed_), &gate);
  // A whole value, so that this is not its end.
  if (cut_inside_a_character) refuse_at(valid, invalid);
}

void JsonEvents::refuse(const std::string& why) const {
  refuse_at(consumed_ > 0 ? consumed_ - 1 : 0, why);
}

void JsonEvents::refuse_at(std::size_t byte, const std::string& why) const {
  fail("{}: byte {}: {}", label_, byte, why);
}

}  // namespace filigree
