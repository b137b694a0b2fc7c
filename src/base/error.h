// The one exception type of the library.
//
// A message names the operation, the value that was wrong and what would be right:
//   "safetensors: tensor 'h.0.ln_1.weight' ends at byte 9000, past the end of the data (8192
//   bytes)".
// The library never prints, exits or aborts; the program turns an Error into exit code 1.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace filigree {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(fmt::format(format, std::forward<Args>(args)...));
}

// Throws unless `condition` holds. The arguments are evaluated even when it does, so keep them
// cheap; use `if (...) fail(...)` in hot code.
template <typename... Args>
void require(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) [[unlikely]]
    throw Error(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace filigree
