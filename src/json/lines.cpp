#include "filigree/json/lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "filigree/json/events.h"

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

bool JsonLines::next() {
  while (!rest_.empty()) {
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    line_ = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++number_;
    if (line_.ends_with('\r')) line_.remove_suffix(1);
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
