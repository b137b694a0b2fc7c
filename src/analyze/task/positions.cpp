#include "analyze/task/positions.h"

#include <fmt/format.h>

#include <algorithm>

#include "filigree/error.h"

namespace filigree {
namespace {

std::size_t checked(const TaskPrompt& prompt, std::int64_t position) {
  require(position >= 0 && position < prompt.length(),
          "position {} of a prompt of {} tokens; they are counted from 0", position,
          prompt.length());
  return static_cast<std::size_t>(position);
}

}  // namespace

std::string token_place(const TaskPrompt& prompt, std::int64_t position) {
  const std::size_t at = checked(prompt, position);
  if (at >= prompt.tokens.size()) return std::to_string(position);
  const std::string& token = prompt.tokens[at];
  const bool several = std::count(prompt.tokens.begin(), prompt.tokens.end(), token) > 1;
  return several ? fmt::format("'{}' {}", token, position) : fmt::format("'{}'", token);
}

std::string role_place(const TaskPrompt& prompt, std::int64_t position) {
  const std::size_t at = checked(prompt, position);
  if (at < prompt.roles.size() && !prompt.roles[at].empty()) return prompt.roles[at];
  return at < prompt.tokens.size() ? fmt::format("'{}'", prompt.tokens[at])
                                   : std::to_string(position);
}

}  // namespace filigree
