// Scripts of Python that check what was written, by the first interpreter that has what they need.
#pragma once

#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdlib>
#include <optional>
#include <string>

namespace filigree {

// The exit code of a script below tests/ with arguments as a shell takes them; nothing where no
// interpreter can run it (exit code 77, or none there), the reason being on stdout.
inline std::optional<int> run_python(const std::string& script, const std::string& arguments) {
  constexpr int kSkipped = 77, kNotFound = 127;
  for (const char* python : {"python3", "/usr/bin/python3"}) {
    const int status = std::system(
        fmt::format("{} '{}/tests/{}' {}", python, FILIGREE_SOURCE_DIR, script, arguments).c_str());
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (code != kSkipped && code != kNotFound) return code;
  }
  return std::nullopt;
}

}  // namespace filigree
