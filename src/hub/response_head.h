// What a server says before it sends a file: the status and the headers that downloads read. All of
// it is untrusted.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace filigree::hub {

class ResponseHead {
 public:
  // One line as it came, with or without its end. A status line starts over: of several heads (an
  // interim "100 Continue") the last one counts. Throws Error where there is too much of it.
  void add_line(std::string_view line);

  int status() const { return status_; }
  bool is_redirect() const;

  // Without the spaces around it; nothing where it is absent. Names are in small letters.
  std::optional<std::string> header(std::string_view name) const;
  // Nothing where it is absent or no whole number.
  std::optional<std::uint64_t> number(std::string_view name) const;

  // What names the content: X-Linked-Etag, or ETag, without W/ and quotes. Throws Error where it is
  // no plain name, since a file is called by it.
  std::optional<std::string> etag() const;
  // The size of the whole file: X-Linked-Size, or Content-Length unless this is a redirect.
  std::optional<std::uint64_t> bytes() const;

 private:
  int status_ = 0;
  std::size_t bytes_read_ = 0;
  std::map<std::string, std::string, std::less<>> headers_;
};

// "bytes 100-199/1000".
struct ContentRange {
  std::uint64_t first = 0, last = 0;  // of a range that cannot be had ("bytes */1000") both 0
  bool satisfied = true;
  std::optional<std::uint64_t> total;  // absent for "*"
};
// Nothing for what is none.
std::optional<ContentRange> parse_content_range(std::string_view text);

}  // namespace filigree::hub
