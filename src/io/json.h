// JSON from files and memory, within limits, and typed reading of configuration objects.
//
// The text is untrusted: its size is checked before it is read, and its depth and number of values
// while it is read, so that neither the stack nor the memory can be exhausted (a document takes at
// most about 100 bytes a value beside its strings). Every Error names the file and the byte
// position or the key, what was found and what would be right.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace filigree {

struct JsonLimits {
  std::size_t max_bytes = std::size_t{64} << 20;
  std::size_t max_depth = 64;        // of nested arrays and objects
  std::size_t max_values = 4000000;  // values in all, keys not counted
  // Python's reader keeps the last of two equal keys; here a doubled key is an Error unless
  // allowed, because which one was meant cannot be known.
  bool allow_duplicate_keys = false;
};

// `source` is the file name that messages carry.
nlohmann::json parse_json(std::string_view text, const std::string& source,
                          const JsonLimits& limits = {});
nlohmann::json read_json(const std::filesystem::path& path, const JsonLimits& limits = {});

// Replaces the file atomically; two spaces of indent, sorted keys and a final newline, as
// transformers writes its configurations.
void write_json(const std::filesystem::path& path, const nlohmann::json& value);

// A configuration object with checked access. In the *_or functions a key that is absent or null
// gives the fallback (transformers writes null for "use the default"); a key that is present with a
// wrong type or out of range is always an Error. Ranges include both ends.
class JsonObject {
 public:
  static constexpr std::int64_t kMinInteger = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t kMaxInteger = std::numeric_limits<std::int64_t>::max();
  static constexpr double kMaxNumber = std::numeric_limits<double>::max();

  // Throws when `value` is not an object.
  JsonObject(nlohmann::json value, std::string source);
  static JsonObject open(const std::filesystem::path& path, const JsonLimits& limits = {});

  // Present and not null.
  bool has(std::string_view key) const;

  std::int64_t integer(std::string_view key, std::int64_t min = kMinInteger,
                       std::int64_t max = kMaxInteger) const;
  std::int64_t integer_or(std::string_view key, std::int64_t fallback,
                          std::int64_t min = kMinInteger, std::int64_t max = kMaxInteger) const;
  double number(std::string_view key, double min = -kMaxNumber, double max = kMaxNumber) const;
  double number_or(std::string_view key, double fallback, double min = -kMaxNumber,
                   double max = kMaxNumber) const;
  bool boolean(std::string_view key) const;
  bool boolean_or(std::string_view key, bool fallback) const;
  std::string string(std::string_view key) const;
  std::string string_or(std::string_view key, std::string fallback) const;

  // A nested object; messages about its keys say "outer.inner".
  JsonObject object(std::string_view key) const;

  std::vector<std::string> keys() const;
  const nlohmann::json& raw() const { return value_; }
  const std::string& source() const { return source_; }

 private:
  const nlohmann::json& required(std::string_view key) const;
  [[noreturn]] void wrong(std::string_view key, const nlohmann::json& found,
                          const std::string& right) const;

  nlohmann::json value_;
  std::string source_;
  std::string prefix_;  // of nested keys: "" or "outer."
};

}  // namespace filigree
