#include "json/object.h"

#include <algorithm>
#include <utility>

#include "filigree/error.h"
#include "filigree/names.h"
#include "json/json.h"

namespace filigree {
namespace {

using Json = nlohmann::json;

// A key of untrusted length makes edit distances slow; no key worth suggesting is this long.
constexpr std::size_t kLongestSuggestion = 128;

std::string describe(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null: return "null";
    case Json::value_t::object: return "an object";
    case Json::value_t::array: return "an array";
    case Json::value_t::string:
      return fmt::format("the string \"{}\"", printable(value.get_ref<const std::string&>(), 40));
    default: return value.dump();
  }
}

std::string number_range(double min, double max) {
  if (min == -JsonObject::kMaxNumber && max == JsonObject::kMaxNumber) return "a number";
  if (max == JsonObject::kMaxNumber) return fmt::format("a number of at least {}", min);
  if (min == -JsonObject::kMaxNumber) return fmt::format("a number of at most {}", max);
  return fmt::format("a number from {} to {}", min, max);
}

std::string integer_range(std::int64_t min, std::int64_t max) {
  if (min == JsonObject::kMinInteger && max == JsonObject::kMaxInteger) return "an integer";
  if (max == JsonObject::kMaxInteger) return fmt::format("an integer of at least {}", min);
  if (min == JsonObject::kMinInteger) return fmt::format("an integer of at most {}", max);
  return fmt::format("an integer from {} to {}", min, max);
}

}  // namespace

struct JsonObject::Document {
  Json value;
  std::string source;
};

JsonObject::JsonObject(Json value, std::string source)
    : document_(std::make_shared<Document>(Document{std::move(value), std::move(source)})),
      value_(&document_->value) {
  if (!value_->is_object())
    fail("json: '{}': holds {}, should hold an object", document_->source, describe(*value_));
}

JsonObject::JsonObject(std::shared_ptr<const Document> document, const Json& value,
                       std::string prefix)
    : document_(std::move(document)), value_(&value), prefix_(std::move(prefix)) {}

JsonObject JsonObject::parse(std::string_view text, const std::string& source,
                             const JsonLimits& limits) {
  return {parse_json(text, source, limits), source};
}

JsonObject JsonObject::open(const std::filesystem::path& path, const JsonLimits& limits) {
  return {read_json(path, limits), path.string()};
}

const std::string& JsonObject::source() const { return document_->source; }

bool JsonObject::has(std::string_view key) const {
  const auto found = value_->find(key);
  return found != value_->end() && !found->is_null();
}

std::int64_t JsonObject::integer(std::string_view key, std::int64_t min, std::int64_t max) const {
  const Json& found = required(key);
  const bool fits = found.is_number_integer() &&
                    (!found.is_number_unsigned() ||
                     found.get<std::uint64_t>() <= static_cast<std::uint64_t>(kMaxInteger));
  if (!fits) wrong(key, found, integer_range(min, max));
  const auto value = found.get<std::int64_t>();
  if (value < min || value > max) wrong(key, found, integer_range(min, max));
  return value;
}

std::int64_t JsonObject::integer_or(std::string_view key, std::int64_t fallback, std::int64_t min,
                                    std::int64_t max) const {
  return has(key) ? integer(key, min, max) : fallback;
}

double JsonObject::number(std::string_view key, double min, double max) const {
  const Json& found = required(key);
  if (!found.is_number()) wrong(key, found, number_range(min, max));
  const auto value = found.get<double>();
  if (!(value >= min && value <= max)) wrong(key, found, number_range(min, max));
  return value;
}

double JsonObject::number_or(std::string_view key, double fallback, double min, double max) const {
  return has(key) ? number(key, min, max) : fallback;
}

bool JsonObject::boolean(std::string_view key) const {
  const Json& found = required(key);
  if (!found.is_boolean()) wrong(key, found, "true or false");
  return found.get<bool>();
}

bool JsonObject::boolean_or(std::string_view key, bool fallback) const {
  return has(key) ? boolean(key) : fallback;
}

std::string JsonObject::string(std::string_view key) const {
  const Json& found = required(key);
  if (!found.is_string()) wrong(key, found, "a string");
  return found.get<std::string>();
}

std::string JsonObject::string_or(std::string_view key, std::string fallback) const {
  return has(key) ? string(key) : std::move(fallback);
}

JsonObject JsonObject::object(std::string_view key) const {
  const Json& found = required(key);
  if (!found.is_object()) wrong(key, found, "an object");
  return {document_, found, fmt::format("{}{}.", prefix_, printable(key))};
}

std::vector<JsonObject> JsonObject::objects(std::string_view key) const {
  std::vector<JsonObject> list;
  for (const Json& item : array(key)) {
    const std::string place = fmt::format("{}[{}]", printable(key), list.size());
    if (!item.is_object()) wrong(place, item, "an object");
    list.push_back({document_, item, fmt::format("{}{}.", prefix_, place)});
  }
  return list;
}

const Json& JsonObject::array(std::string_view key) const {
  const Json& found = required(key);
  if (!found.is_array()) wrong(key, found, "an array");
  return found;
}

std::vector<std::string> JsonObject::keys() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : value_->get_ref<const Json::object_t&>()) names.push_back(name);
  return names;
}

const Json& JsonObject::required(std::string_view key) const {
  const auto found = value_->find(key);
  if (found != value_->end()) return *found;
  std::vector<std::string> candidates = keys();
  std::erase_if(candidates, [](const auto& name) { return name.size() > kLongestSuggestion; });
  std::string nearest;
  for (const std::string& name : nearest_names(key, candidates, 3))
    nearest += fmt::format("{}'{}{}'", nearest.empty() ? "" : ", ", prefix_, printable(name));
  fail("json: '{}': key '{}{}' is missing; {}", source(), prefix_, printable(key),
       nearest.empty() ? "the object is empty" : "nearest keys there: " + nearest);
}

void JsonObject::wrong(std::string_view key, const Json& found, const std::string& right) const {
  fail("json: '{}': key '{}{}' is {}, should be {}", source(), prefix_, printable(key),
       describe(found), right);
}

}  // namespace filigree
