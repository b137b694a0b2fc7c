// Warnings from the library to whoever embeds it. The library itself never prints: without a
// handler a warning is dropped; the program installs one that writes to stderr.
#pragma once

#include <fmt/core.h>

#include <functional>
#include <string>

namespace filigree {

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
