#include "filigree/io/json_events.h"

#include <iterator>
#include <utility>

#include "filigree/base/error.h"
#include "filigree/base/strings.h"

namespace filigree {
namespace {

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

JsonEvents::JsonEvents(std::string label, std::string_view text)
    : label_(std::move(label)), text_(text) {}

void JsonEvents::run() {
  const std::size_t nul = text_.find('\0');
  if (nul != std::string_view::npos)
    fail("{}: byte {}: a NUL byte, which no JSON text holds", label_, nul);
  consumed_ = 0;
  nlohmann::json_sax<nlohmann::json>* handlers = this;
  nlohmann::json::sax_parse(CountingIterator(text_.data(), &consumed_),
                            CountingIterator(text_.data() + text_.size(), &consumed_), handlers);
}

bool JsonEvents::binary(binary_t&) { fail("{}: binary values are not JSON", label_); }

bool JsonEvents::parse_error(std::size_t position, const std::string&,
                             const nlohmann::json::exception& error) {
  // The parser's text begins with its own "[json.exception...] ", which helps no reader, and ends
  // with the last token, which may be as long as the file.
  std::string_view message = error.what();
  const std::size_t bracket = message.find("] ");
  if (bracket != std::string_view::npos) message.remove_prefix(bracket + 2);
  fail("{}: byte {}: {}", label_, position > 0 ? position - 1 : 0,
       printable(message, kMessageLimit));
}

}  // namespace filigree
