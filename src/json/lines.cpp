#include "json/lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "filigree/error.h"
#include "json/events.h"

namespace filigree {
namespace {

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

}  // namespace

JsonLines::JsonLines(std::string_view text, std::string source, LastLine last,
                     const JsonLimits& limits)
    : rest_(text), source_(std::move(source)), last_(last), limits_(limits) {}

JsonLines JsonLines::open(const std::filesystem::path& path, LastLine last,
                          const JsonLimits& limits) {
  auto file = MappedFile::open(path);
  JsonLines lines(file->text(), path.string(), last, limits);
  lines.file_ = std::move(file);
  return lines;
}

// Looks no further than a line may reach: a file of a terabyte without a line break would be read
// to its end, and be in memory by then.
std::string_view JsonLines::take_line() {
  const std::string_view possible = rest_.substr(0, limits_.max_bytes + 1);
  const std::size_t end = std::min(possible.find('\n'), possible.size());
  if (end > limits_.max_bytes)
    fail("json: '{}': a line of more than {} bytes, the most that are read", place(),
         limits_.max_bytes);
  const std::string_view line = rest_.substr(0, end);
  rest_.remove_prefix(std::min(end + 1, rest_.size()));
  return line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
}

void JsonLines::release_what_was_read() {
  constexpr std::size_t kStep = std::size_t{16} << 20;
  if (file_ == nullptr) return;
  const std::size_t read = file_->text().size() - rest_.size();
  if (read - released_ < kStep) return;
  file_->release(file_->bytes().subspan(released_, read - released_));
  released_ = read;
}

bool JsonLines::next() {
  while (!rest_.empty()) {
    release_what_was_read();
    ++number_;
    line_ = take_line();
    if (is_blank(line_)) continue;
    try {
      object_ = std::make_unique<const JsonObject>(JsonObject::parse(line_, place(), limits_));
      return true;
    } catch (const JsonCutShort&) {
      if (last_ == LastLine::kWhole || !is_blank(rest_)) throw;
    }
  }
  return false;
}

std::string JsonLines::place() const { return fmt::format("{}, line {}", source_, number_); }

}  // namespace filigree
