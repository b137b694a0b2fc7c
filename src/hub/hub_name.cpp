#include "hub/hub_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/utf8.h"
#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree::hub {
namespace {

constexpr std::size_t kMaxPartBytes = 96, kMaxRevisionBytes = 200;
constexpr std::size_t kMaxFilePartBytes = 255, kMaxFileBytes = 1024;

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

std::vector<std::string_view> parts_between_slashes(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t slash = text.find('/');
    parts.push_back(text.substr(0, slash));
    if (slash == std::string_view::npos) return parts;
    text.remove_prefix(slash + 1);
  }
}

// What is wrong with "org" or "name", or "".
std::string problem_of_part(std::string_view part) {
  if (part.empty()) return "an empty part";
  if (part.size() > kMaxPartBytes) return fmt::format("a part of {} bytes", part.size());
  for (const char c : part)
    if (!is_letter_or_digit(c) && c != '-' && c != '_' && c != '.')
      return fmt::format("'{}' in it", printable(std::string_view(&c, 1)));
  for (const char c : {part.front(), part.back()})
    if (c == '-' || c == '.') return fmt::format("a part that begins or ends with '{}'", c);
  if (part.find("--") != std::string_view::npos) return "'--' in it";
  if (part.find("..") != std::string_view::npos) return "'..' in it";
  return "";
}

std::string problem_of_repository(std::string_view repository) {
  const std::vector<std::string_view> parts = parts_between_slashes(repository);
  if (parts.size() > 2) return "more than one '/'";
  for (const std::string_view part : parts)
    if (std::string problem = problem_of_part(part); !problem.empty()) return problem;
  if (repository.ends_with(".git")) return "'.git' at its end";
  return "";
}

// As git has names of branches and tags.
bool is_revision(std::string_view revision) {
  if (revision.empty() || revision.size() > kMaxRevisionBytes) return false;
  for (const char c : revision)
    if (!is_letter_or_digit(c) && std::string_view("-_.+/=#%!,").find(c) == std::string_view::npos)
      return false;
  for (const std::string_view part : parts_between_slashes(revision))
    if (part.empty() || part.starts_with('.') || part.starts_with('-') || part.ends_with('.') ||
        part.ends_with(".lock") || part.find("..") != std::string_view::npos)
      return false;
  return true;
}

// "" or what is wrong.
std::string read_name(std::string_view text, HubName& name) {
  const std::size_t colon = text.find(':');
  const std::string_view left = text.substr(0, colon);
  const std::size_t at = left.find('@');
  const std::string_view repository = left.substr(0, at);
  if (std::string problem = problem_of_repository(repository); !problem.empty())
    return "a name of the hub does not have " + problem;
  name = {.repository = std::string(repository)};
  if (at != std::string_view::npos) {
    const std::string_view revision = left.substr(at + 1);
    if (!is_revision(revision))
      return fmt::format("'{}' is no revision: a branch, a tag or a commit", printable(revision));
    name.revision = revision;
  }
  if (colon != std::string_view::npos) {
    const std::string_view file = text.substr(colon + 1);
    if (!is_file_of_repository(file))
      return fmt::format("'{}' is no file of a repository", printable(file));
    name.file = file;
  }
  return "";
}

}  // namespace

std::string HubName::text() const {
  return repository + (revision == kMainRevision ? "" : "@" + revision) +
         (file.empty() ? "" : ":" + file);
}

HubName parse_hub_name(std::string_view text) {
  HubName name;
  const std::string problem = read_name(text, name);
  require(problem.empty(), "'{}': {}; it is ORG/NAME, ORG/NAME@REVISION or ORG/NAME:FILE.gguf",
          printable(text), problem);
  return name;
}

std::optional<HubName> hub_name_if_any(std::string_view text) {
  HubName name;
  if (!read_name(text, name).empty()) return std::nullopt;
  return name;
}

bool is_commit(std::string_view text) {
  constexpr std::size_t kDigits = 40;
  return text.size() == kDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_file_of_repository(std::string_view name) {
  if (name.empty() || name.size() > kMaxFileBytes || !is_valid_utf8(name)) return false;
  for (const char c : name)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F || c == '\\') return false;
  const std::vector<std::string_view> parts = parts_between_slashes(name);
  return std::none_of(parts.begin(), parts.end(), [](std::string_view part) {
    return part.empty() || part == "." || part == ".." || part.size() > kMaxFilePartBytes;
  });
}

}  // namespace filigree::hub
