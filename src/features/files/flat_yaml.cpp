#include "features/files/flat_yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <optional>
#include <set>
#include <sstream>

#include "base/mapped_file.h"
#include "base/utf8.h"
#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree {
namespace {

constexpr std::size_t kLargestYaml = 1 << 20;

// Takes yaml-cpp's events and refuses those that the configurations have no use for.
class FlatReader : public YAML::EventHandler {
 public:
  explicit FlatReader(const std::string& source) : source_(source) {}

  std::map<std::string, FlatYaml::Value> take_values() { return std::move(values_); }

  [[noreturn]] void refuse(const YAML::Mark& mark, std::string_view why) const {
    fail("'{}' line {}: {}; only keys with a text or a list of texts can be read", source_,
         mark.line + 1, why);
  }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    check(mark, anchor, "?");
    if (list_) refuse(mark, "an item without a text");
    if (!key_) refuse(mark, "no key");
    key_.reset();
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { refuse(mark, "an alias"); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check(mark, anchor, tag);
    if (!in_map_) refuse(mark, "no key");
    if (list_)
      list_->push_back(value);
    else if (key_)
      keep(value);
    else if (!keys_.insert(value).second)
      refuse(mark, fmt::format("key '{}' appears twice", printable(value)));
    else
      key_ = value;
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    check(mark, anchor, tag);
    if (!key_ || list_) refuse(mark, "a list where a key or a text should be");
    list_.emplace();
  }
  void OnSequenceEnd() override {
    keep(std::move(*list_));
    list_.reset();
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    check(mark, anchor, tag);
    if (in_map_) refuse(mark, "a key inside another one");
    in_map_ = true;
  }
  void OnMapEnd() override {}

 private:
  // "?" and "!" stand for no tag, of plain and of quoted texts.
  void check(const YAML::Mark& mark, YAML::anchor_t anchor, const std::string& tag) const {
    if (anchor != YAML::NullAnchor) refuse(mark, "an anchor");
    if (!tag.empty() && tag != "?" && tag != "!")
      refuse(mark, fmt::format("the tag '{}'", printable(tag)));
  }
  void keep(FlatYaml::Value value) {
    values_.emplace(std::move(*key_), std::move(value));
    key_.reset();
  }

  const std::string& source_;
  bool in_map_ = false;
  std::optional<std::string> key_;                // whose value comes next
  std::optional<std::vector<std::string>> list_;  // the value, while it is read
  std::set<std::string> keys_;                    // those without a value too
  std::map<std::string, FlatYaml::Value> values_;
};

}  // namespace

FlatYaml FlatYaml::parse(std::string_view text, const std::string& source) {
  if (text.size() > kLargestYaml)
    fail("'{}' has {} bytes, a configuration has at most {}", source, text.size(), kLargestYaml);
  if (!is_valid_utf8(text)) fail("'{}' is not UTF-8", source);
  FlatYaml yaml;
  yaml.source_ = source;
  FlatReader reader(source);
  try {
    std::istringstream in{std::string(text)};
    YAML::Parser parser(in);
    parser.HandleNextDocument(reader);
    if (parser.HandleNextDocument(reader)) fail("'{}' has more than one document", source);
  } catch (const YAML::Exception& error) {
    reader.refuse(error.mark, error.msg);
  }
  yaml.values_ = reader.take_values();
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
