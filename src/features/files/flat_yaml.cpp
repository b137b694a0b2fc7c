#include "features/files/flat_yaml.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/mapped_file.h"
#include "base/utf8.h"
#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree {
namespace {

constexpr std::size_t kLargestYaml = 1 << 20;

bool blank(char c) { return c == ' ' || c == '\t'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && (blank(text.back()) || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

class YamlReader {
 public:
  YamlReader(std::string_view text, const std::string& source) : rest_(text), source_(source) {}

  std::map<std::string, FlatYaml::Value> read() {
    while (next_line()) {
      if (line_.starts_with("- ") || line_ == "-")
        read_item();
      else
        read_key();
    }
    drop_nulls();
    return std::move(values_);
  }

 private:
  [[noreturn]] void refuse(std::string_view why) const {
    fail("'{}' line {}: {}; only keys with a text or a list of texts can be read", source_, number_,
         why);
  }

  // The next line that says something; `indented_` tells whether it began with spaces.
  bool next_line() {
    while (!rest_.empty()) {
      const std::size_t end = std::min(rest_.find('\n'), rest_.size());
      const std::string_view whole = rest_.substr(0, end);
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++number_;
      line_ = trimmed(whole);
      if (line_.empty() || line_[0] == '#') continue;
      if (number_ == 1 && line_ == "---") continue;
      indented_ = blank(whole[0]);
      return true;
    }
    return false;
  }

  void read_item() {
    if (list_ == nullptr) refuse("an item of no list");
    std::string_view rest = trimmed(line_.substr(1));
    if (rest.empty() || rest[0] == '#') refuse("an item without a text");
    list_->push_back(scalar(rest, ""));
    end_of_line(rest);
  }

  void read_key() {
    if (indented_) refuse("a key inside another one, or a text of several lines");
    std::string_view rest = line_;
    const std::string key = rest[0] == '"' || rest[0] == '\'' ? quoted(rest) : plain_key(rest);
    rest = trimmed(rest);
    if (rest.empty() || rest[0] != ':') refuse("no ':' behind the key");
    rest = trimmed(rest.substr(1));
    list_ = nullptr;
    FlatYaml::Value value = std::string();
    bool null = false;
    if (rest.empty() || rest[0] == '#') {
      // A list may follow; without one there is nothing here.
      value = std::vector<std::string>();
      null = true;
    } else if (rest[0] == '[') {
      value = inline_list(rest);
    } else {
      const bool plain = rest[0] != '"' && rest[0] != '\'';
      std::string text = scalar(rest, "");
      null = plain && (text == "null" || text == "~" || text == "Null" || text == "NULL");
      value = std::move(text);
      end_of_line(rest);
    }
    const auto [place, is_new] = values_.emplace(key, std::move(value));
    if (!is_new) refuse(fmt::format("key '{}' appears twice", printable(key)));
    if (!null) return;
    if (auto* list = std::get_if<std::vector<std::string>>(&place->second))
      list_ = list;
    else
      place->second = std::vector<std::string>();
  }

  std::string plain_key(std::string_view& rest) {
    const std::size_t end = rest.find(':');
    if (end == std::string_view::npos) refuse("no ':' behind a key");
    const std::string_view key = trimmed(rest.substr(0, end));
    const auto allowed = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '_' || c == '-' || c == '.';
    };
    if (key.empty() || !std::all_of(key.begin(), key.end(), allowed))
      refuse(fmt::format("'{}' is no key", printable(key)));
    const std::string_view behind = rest.substr(end + 1);
    if (!behind.empty() && !blank(behind[0])) refuse("no space behind the ':' of a key");
    rest.remove_prefix(end);
    return std::string(key);
  }

  std::vector<std::string> inline_list(std::string_view& rest) {
    std::vector<std::string> list;
    rest = trimmed(rest.substr(1));
    while (rest.empty() || rest[0] != ']') {
      if (rest.empty() || rest[0] == '#') refuse("a list that does not end in its line");
      list.push_back(scalar(rest, ",]"));
      rest = trimmed(rest);
      if (!rest.empty() && rest[0] == ',')
        rest = trimmed(rest.substr(1));
      else if (rest.empty() || rest[0] != ']')
        refuse("no ',' or ']' behind an item");
    }
    rest.remove_prefix(1);
    end_of_line(rest);
    return list;
  }

  // A text, taken off the front; a plain one ends at any of `ends`, at a comment or with the line.
  std::string scalar(std::string_view& rest, std::string_view ends) {
    if (rest[0] == '"' || rest[0] == '\'') return quoted(rest);
    constexpr std::string_view kSpecial = "&*!|>%@`{}[],?";
    if (kSpecial.find(rest[0]) != std::string_view::npos || rest.starts_with("- ") || rest == "-")
      refuse(fmt::format("a text that begins with '{}'", rest[0]));
    std::size_t end = 0;
    while (end < rest.size() && ends.find(rest[end]) == std::string_view::npos &&
           !(rest[end] == '#' && blank(rest[end - 1]))) {
      if (rest[end] == ':' && (end + 1 == rest.size() || blank(rest[end + 1])))
        refuse("a key inside another one");
      ++end;
    }
    std::string text(trimmed(rest.substr(0, end)));
    rest.remove_prefix(text.size());
    if (text.empty()) refuse("an item without a text");
    return text;
  }

  std::string quoted(std::string_view& rest) {
    const char quote = rest[0];
    std::string text;
    for (std::size_t i = 1; i < rest.size(); ++i) {
      const char c = rest[i];
      if (c == quote && quote == '\'' && i + 1 < rest.size() && rest[i + 1] == quote) {
        text += quote;
        ++i;
      } else if (c == quote) {
        rest.remove_prefix(i + 1);
        return text;
      } else if (c == '\\' && quote == '"') {
        text += escaped(rest, ++i);
      } else {
        text += c;
      }
    }
    refuse("quotes that do not end in their line");
  }

  char escaped(std::string_view rest, std::size_t& at) const {
    const char c = at < rest.size() ? rest[at] : '\0';
    switch (c) {
      case '"':
      case '\\':
      case '/': return c;
      case 'n': return '\n';
      case 't': return '\t';
      case 'r': return '\r';
      default: refuse("an escape that is none of \\\" \\\\ \\/ \\n \\t \\r");
    }
  }

  void end_of_line(std::string_view rest) const {
    const std::string_view behind = trimmed(rest);
    if (!behind.empty() && (behind[0] != '#' || behind.data() == rest.data()))
      refuse(fmt::format("'{}' behind a value", printable(behind)));
  }

  // Keys that turned out to have nothing.
  void drop_nulls() {
    std::erase_if(values_, [](const auto& entry) {
      const auto* list = std::get_if<std::vector<std::string>>(&entry.second);
      return list != nullptr && list->empty();
    });
  }

  std::string_view rest_;
  const std::string& source_;
  std::string_view line_;
  std::size_t number_ = 0;
  bool indented_ = false;
  std::vector<std::string>* list_ = nullptr;  // that items belong to
  std::map<std::string, FlatYaml::Value> values_;
};

}  // namespace

FlatYaml FlatYaml::parse(std::string_view text, const std::string& source) {
  if (text.size() > kLargestYaml)
    fail("'{}' has {} bytes, a configuration has at most {}", source, text.size(), kLargestYaml);
  if (!is_valid_utf8(text)) fail("'{}' is not UTF-8", source);
  FlatYaml yaml;
  yaml.source_ = source;
  yaml.values_ = YamlReader(text, source).read();
  return yaml;
}

FlatYaml FlatYaml::open(const std::filesystem::path& path) {
  return parse(MappedFile::open(path)->text(), path.string());
}

const FlatYaml::Value& FlatYaml::at(std::string_view key) const {
  const auto found = values_.find(std::string(key));
  if (found == values_.end()) fail("'{}' has no {}", source_, key);
  return found->second;
}

const std::string& FlatYaml::text(std::string_view key) const {
  const auto* text = std::get_if<std::string>(&at(key));
  if (text == nullptr) fail("'{}': {} is a list, should be a text", source_, key);
  return *text;
}

std::string FlatYaml::text_or(std::string_view key, std::string fallback) const {
  return has(key) ? text(key) : std::move(fallback);
}

const std::vector<std::string>& FlatYaml::list(std::string_view key) const {
  const auto* list = std::get_if<std::vector<std::string>>(&at(key));
  if (list == nullptr) fail("'{}': {} is a text, should be a list", source_, key);
  return *list;
}

std::string yaml_text(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    switch (c) {
      case '"': quoted += "\\\""; break;
      case '\\': quoted += "\\\\"; break;
      case '\n': quoted += "\\n"; break;
      case '\t': quoted += "\\t"; break;
      case '\r': quoted += "\\r"; break;
      default: quoted += c;
    }
  }
  return quoted + "\"";
}

}  // namespace filigree
