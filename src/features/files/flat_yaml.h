// The part of YAML that configurations of transcoders are written in: keys with a text or a list of
// texts, quotes, comments.
//
//   model_name: "gpt2"          # a comment
//   scan: null                  # as if it were not there
//   transcoders:
//     - layer_0.safetensors
//   hooks: [a, 'b']
//
// yaml-cpp reads it. What such a file has no use for (nested keys, anchors, tags, a key twice) is
// refused by its line.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace filigree {

class FlatYaml {
 public:
  using Value = std::variant<std::string, std::vector<std::string>>;

  // `source` is the file name that messages carry. Throws Error, naming the line.
  static FlatYaml parse(std::string_view text, const std::string& source);
  static FlatYaml open(const std::filesystem::path& path);

  bool has(std::string_view key) const { return values_.contains(std::string(key)); }
  // Throws Error, naming the file and the key, when it is absent or of the other kind.
  const std::string& text(std::string_view key) const;
  std::string text_or(std::string_view key, std::string fallback) const;
  const std::vector<std::string>& list(std::string_view key) const;

  const std::map<std::string, Value>& values() const { return values_; }
  const std::string& source() const { return source_; }

 private:
  const Value& at(std::string_view key) const;

  std::string source_;
  std::map<std::string, Value> values_;
};

// As a value of YAML that reads as this text whatever is in it.
std::string yaml_text(std::string_view text);

}  // namespace filigree
