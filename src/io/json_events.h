// The one way JSON text enters the library: a pass over the text that reports each value as an
// event. Malformed text, and text that nlohmann would cut short (a NUL byte ends its input),
// becomes an Error with the label and the byte position. A reader that needs a document builds one
// from the events; a reader that does not (safetensors headers) holds only what it keeps, so
// hostile text cannot make it allocate a multiple of its own size. The parser behind it keeps its
// own stack on the heap: depth costs no call stack here, but handlers must bound it before they
// build anything.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace filigree {

class JsonEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  // `label` starts every message, e.g. "json: 'config.json'". `text` must outlive the object.
  JsonEvents(std::string label, std::string_view text);

  // Reads the whole text; the handlers of the subclass throw to stop early.
  void run();

 protected:
  const std::string& label() const { return label_; }

  // Offset of the last byte read: inside an event, the end of the token that caused it or the one
  // byte after it that a number needs to know its end.
  std::size_t position() const { return consumed_ > 0 ? consumed_ - 1 : 0; }

 private:
  bool binary(binary_t& value) final;
  bool parse_error(std::size_t position, const std::string& last_token,
                   const nlohmann::json::exception& error) final;

  std::string label_;
  std::string_view text_;
  std::size_t consumed_ = 0;
};

}  // namespace filigree
