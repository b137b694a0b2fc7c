// Errors, and the messages that are printed beside results.
#pragma once

#include <fmt/core.h>

#include <functional>
#include <stdexcept>
#include <string>

namespace filigree {

// -------------------------------------------------------------------------------------------------
// The one exception type of the library.
//
// A message names the operation, the value that was wrong and what would be right:
//   "safetensors: tensor 'h.0.ln_1.weight' ends at byte 9000, past the end of the data (8192
//   bytes)".
// The library never prints, exits or aborts; the program turns an Error into exit code 1.

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Formats and throws, out of line: the many places that may fail then hold a call and no more.
[[noreturn]] void fail_with(fmt::string_view format, fmt::format_args args);

template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  fail_with(format, fmt::make_format_args(args...));
}

// Throws unless `condition` holds. The arguments are evaluated even when it does, so keep them
// cheap; use `if (...) fail(...)` in hot code.
template <typename... Args>
void require(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) [[unlikely]]
    fail_with(format, fmt::make_format_args(args...));
}

// -------------------------------------------------------------------------------------------------
// Warnings from the library to whoever embeds it. The library itself never prints: without a
// handler a warning is dropped; the program installs one that writes to stderr.

using WarningHandler = std::function<void(const std::string&)>;

// Installs `handler` for the whole process and returns the previous one, which is not called any
// more once this has returned. Thread-safe, but not to be called from inside a handler.
WarningHandler set_warning_handler(WarningHandler handler);

// Handlers run one at a time. A warning given by a handler itself is dropped.
void warn_message(const std::string& message);

template <typename... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  warn_message(fmt::vformat(format, fmt::make_format_args(args...)));
}

}  // namespace filigree
