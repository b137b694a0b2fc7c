// Typed reading of JSON objects: configurations, indices, states. Every Error names the file and
// the key, what was found and what would be right.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "json/json_limits.h"

namespace filigree {

// An object with checked access; copies and nested objects share the document. In the *_or
// functions a key that is absent or null gives the fallback (transformers writes null for "use the
// default"); a key that is present with a wrong type or out of range is always an Error. Ranges
// include both ends.
class JsonObject {
 public:
  static constexpr std::int64_t kMinInteger = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t kMaxInteger = std::numeric_limits<std::int64_t>::max();
  static constexpr double kMaxNumber = std::numeric_limits<double>::max();

  // Throws when `value` is not an object.
  JsonObject(nlohmann::json value, std::string source);
  static JsonObject parse(std::string_view text, const std::string& source,
                          const JsonLimits& limits = {});
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

  // A nested object, and a list of them; messages about their keys say "outer.inner" and
  // "outer[3].inner".
  JsonObject object(std::string_view key) const;
  std::vector<JsonObject> objects(std::string_view key) const;
  const nlohmann::json& array(std::string_view key) const;

  std::vector<std::string> keys() const;
  const nlohmann::json& raw() const { return *value_; }
  const std::string& source() const;

 private:
  struct Document;

  JsonObject(std::shared_ptr<const Document> document, const nlohmann::json& value,
             std::string prefix);

  const nlohmann::json& required(std::string_view key) const;
  [[noreturn]] void wrong(std::string_view key, const nlohmann::json& found,
                          const std::string& right) const;

  std::shared_ptr<const Document> document_;
  const nlohmann::json* value_;
  std::string prefix_;  // of nested keys: "" or "outer."
};

}  // namespace filigree
