#include "hub/response_head.h"

#include <charconv>

#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree::hub {
namespace {

constexpr std::size_t kMaxHeadBytes = std::size_t{64} << 10, kMaxEtagBytes = 128;

std::string_view without_spaces(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

std::optional<std::uint64_t> whole_number_of(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// W/"abc" and "abc" are abc.
std::string_view without_quotes(std::string_view etag) {
  if (etag.starts_with("W/")) etag.remove_prefix(2);
  if (etag.size() >= 2 && etag.starts_with('"') && etag.ends_with('"'))
    etag = etag.substr(1, etag.size() - 2);
  return etag;
}

bool names_a_blob(std::string_view etag) {
  return !etag.empty() && etag.size() <= kMaxEtagBytes && !etag.starts_with('.') &&
         etag.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
             std::string_view::npos;
}

}  // namespace

void ResponseHead::add_line(std::string_view line) {
  bytes_read_ += line.size();
  require(bytes_read_ <= kMaxHeadBytes, "the server's answer has more than {} of headers",
          human_bytes(kMaxHeadBytes));
  line = without_spaces(line);
  if (line.starts_with("HTTP/")) {
    headers_.clear();
    status_ = 0;
    const std::size_t space = line.find(' ');
    const std::string_view digits =
        space == std::string_view::npos ? std::string_view() : line.substr(space + 1, 3);
    const std::optional<std::uint64_t> status = whole_number_of(digits);
    status_ = status ? static_cast<int>(*status) : 0;
    return;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  std::string name(line.substr(0, colon));
  for (char& c : name)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  headers_[name] = without_spaces(line.substr(colon + 1));
}

bool ResponseHead::is_redirect() const {
  return (status_ == 301 || status_ == 302 || status_ == 303 || status_ == 307 || status_ == 308) &&
         headers_.contains("location");
}

std::optional<std::string> ResponseHead::header(std::string_view name) const {
  const auto found = headers_.find(name);
  if (found == headers_.end()) return std::nullopt;
  return found->second;
}

std::optional<std::uint64_t> ResponseHead::number(std::string_view name) const {
  const std::optional<std::string> text = header(name);
  return text ? whole_number_of(*text) : std::nullopt;
}

std::optional<std::string> ResponseHead::etag() const {
  std::optional<std::string> given = header("x-linked-etag");
  if (!given) given = header("etag");
  if (!given) return std::nullopt;
  const std::string_view etag = without_quotes(*given);
  require(names_a_blob(etag), "the server's ETag '{}' is none that a file can be called by",
          printable(*given));
  return std::string(etag);
}

std::optional<std::uint64_t> ResponseHead::bytes() const {
  if (const std::optional<std::uint64_t> linked = number("x-linked-size")) return linked;
  // Packed on its way, it has another length.
  const std::optional<std::string> packed = header("content-encoding");
  if (is_redirect() || (packed && *packed != "identity")) return std::nullopt;
  return number("content-length");
}

std::optional<ContentRange> parse_content_range(std::string_view text) {
  constexpr std::string_view kUnit = "bytes ";
  if (!text.starts_with(kUnit)) return std::nullopt;
  text.remove_prefix(kUnit.size());
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string_view range = text.substr(0, slash), total = text.substr(slash + 1);
  ContentRange parsed;
  if (total != "*") {
    parsed.total = whole_number_of(total);
    if (!parsed.total) return std::nullopt;
  }
  if (range == "*") {
    parsed.satisfied = false;
    return parsed;
  }
  const std::size_t dash = range.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = whole_number_of(range.substr(0, dash)),
             last = whole_number_of(range.substr(dash + 1));
  if (!first || !last || *last < *first || (parsed.total && *last >= *parsed.total))
    return std::nullopt;
  parsed.first = *first;
  parsed.last = *last;
  return parsed;
}

}  // namespace filigree::hub
