// The one way JSON text enters the library: a pass over the text that reports each value as an
// event. Everything that no reader accepts is refused here, with the label and the byte position:
// text beyond the limits, a NUL byte (which nlohmann takes for the end of its input), invalid
// UTF-8, malformed JSON, and anything but white space behind the value. A reader that needs a
// document builds one from the events (json.h); a reader that does not (safetensors headers) holds
// only what it keeps, so that hostile text cannot make it allocate a multiple of its own size.
// Depth costs no call stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "filigree/error.h"
#include "json/json_limits.h"

namespace filigree {

// The text is well-formed as far as it goes, but ends before its value does.
class JsonCutShort : public Error {
 public:
  using Error::Error;
};

class JsonEvents {
 public:
  // `label` starts every message, e.g. "json: 'config.json'". `text` must outlive the object.
  JsonEvents(std::string label, std::string_view text, const JsonLimits& limits);
  virtual ~JsonEvents() = default;
  JsonEvents(const JsonEvents&) = delete;
  JsonEvents& operator=(const JsonEvents&) = delete;

  // Reads the whole text; the handlers of the subclass throw to stop early.
  void run();

 protected:
  const std::string& label() const { return label_; }

  // Throws Error: label, byte position, why. The position is that of the last byte read: inside an
  // event, the end of the token that caused it or the one byte after it that a number needs to know
  // its end.
  [[noreturn]] void refuse(const std::string& why) const;

 private:
  class Gate;

  virtual void null() = 0;
  virtual void boolean(bool value) = 0;
  virtual void negative(std::int64_t value) = 0;
  virtual void natural(std::uint64_t value) = 0;
  // A number with a fraction or an exponent, or beyond 64 bits; and how it is spelled.
  virtual void real(double value, const std::string& spelling) = 0;
  virtual void string(std::string&& value) = 0;
  virtual void key(std::string&& name) = 0;
  virtual void begin_object() = 0;
  virtual void end_object() = 0;
  virtual void begin_array() = 0;
  virtual void end_array() = 0;

  [[noreturn]] void refuse_at(std::size_t byte, const std::string& why) const;

  std::string label_;
  std::string_view text_;
  JsonLimits limits_;
  std::size_t consumed_ = 0;
};

}  // namespace filigree
