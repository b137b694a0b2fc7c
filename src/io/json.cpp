#include "filigree/io/json.h"

#include <algorithm>
#include <span>
#include <utility>

#include "filigree/base/atomic_file.h"
#include "filigree/base/error.h"
#include "filigree/base/mapped_file.h"
#include "filigree/base/strings.h"
#include "filigree/io/json_events.h"

namespace filigree {
namespace {

using Json = nlohmann::json;

// A key of untrusted length makes edit distances slow; no key worth suggesting is this long.
constexpr std::size_t kLongestSuggestion = 128;

class DocumentBuilder final : public JsonEvents {
 public:
  DocumentBuilder(std::string label, std::string_view text, const JsonLimits& limits)
      : JsonEvents(std::move(label), text), limits_(limits) {}

  Json take() { return std::move(root_); }

 private:
  bool null() override { return value(nullptr); }
  bool boolean(bool given) override { return value(given); }
  bool number_integer(number_integer_t given) override { return value(given); }
  bool number_unsigned(number_unsigned_t given) override { return value(given); }
  bool number_float(number_float_t given, const string_t&) override { return value(given); }
  bool string(string_t& given) override { return value(std::move(given)); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    auto& members = open_.back()->get_ref<Json::object_t&>();
    const auto [member, inserted] = members.try_emplace(std::move(name));
    if (!inserted && !limits_.allow_duplicate_keys)
      fail("{}: byte {}: the key '{}' appears twice in one object", label(), position(),
           printable(member->first));
    member_ = &member->second;
    return true;
  }

  bool value(Json given) {
    add(std::move(given));
    return true;
  }

  Json* add(Json given) {
    if (++values_ > limits_.max_values)
      fail("{}: byte {}: more than {} values, the limit", label(), position(), limits_.max_values);
    if (open_.empty()) {
      root_ = std::move(given);
      return &root_;
    }
    if (open_.back()->is_array()) {
      open_.back()->push_back(std::move(given));
      return &open_.back()->back();
    }
    *member_ = std::move(given);
    return member_;
  }

  bool open(Json container) {
    if (open_.size() >= limits_.max_depth)
      fail("{}: byte {}: nested more than {} levels deep, the limit", label(), position(),
           limits_.max_depth);
    open_.push_back(add(std::move(container)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  JsonLimits limits_;
  Json root_;
  std::vector<Json*> open_;  // containers from the root to the current one; none grows while a
                             // later one is open, so the pointers stay valid
  Json* member_ = nullptr;   // where the value of the last key goes
  std::size_t values_ = 0;
};

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

Json parse_json(std::string_view text, const std::string& source, const JsonLimits& limits) {
  std::string label = fmt::format("json: '{}'", source);
  if (text.size() > limits.max_bytes)
    fail("{}: {} bytes long, the limit is {}", label, text.size(), limits.max_bytes);
  DocumentBuilder builder(std::move(label), text, limits);
  builder.run();
  return builder.take();
}

Json read_json(const std::filesystem::path& path, const JsonLimits& limits) {
  const auto file = MappedFile::open(path);
  const std::span<const std::byte> bytes = file->bytes();
  return parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string(),
                    limits);
}

void write_json(const std::filesystem::path& path, const Json& value) {
  std::string text;
  try {
    text = value.dump(2);
  } catch (const Json::exception&) {
    fail("json: cannot write '{}': a string in it is not UTF-8", path.string());
  }
  text += '\n';
  write_file_atomically(path, text);
}

JsonObject::JsonObject(Json value, std::string source)
    : value_(std::move(value)), source_(std::move(source)) {
  if (!value_.is_object())
    fail("json: '{}': holds {}, should hold an object", source_, describe(value_));
}

JsonObject JsonObject::open(const std::filesystem::path& path, const JsonLimits& limits) {
  return JsonObject(read_json(path, limits), path.string());
}

bool JsonObject::has(std::string_view key) const {
  const auto found = value_.find(key);
  return found != value_.end() && !found->is_null();
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
  JsonObject nested(found, source_);
  nested.prefix_ = fmt::format("{}{}.", prefix_, printable(key));
  return nested;
}

std::vector<std::string> JsonObject::keys() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : value_.get_ref<const Json::object_t&>()) names.push_back(name);
  return names;
}

const Json& JsonObject::required(std::string_view key) const {
  const auto found = value_.find(key);
  if (found != value_.end()) return *found;
  std::vector<std::string> candidates = keys();
  std::erase_if(candidates, [](const auto& name) { return name.size() > kLongestSuggestion; });
  std::string nearest;
  for (const std::string& name : nearest_names(key, candidates, 3))
    nearest += fmt::format("{}'{}{}'", nearest.empty() ? "" : ", ", prefix_, printable(name));
  fail("json: '{}': key '{}{}' is missing; {}", source_, prefix_, printable(key),
       nearest.empty() ? "the object is empty" : "nearest keys there: " + nearest);
}

void JsonObject::wrong(std::string_view key, const Json& found, const std::string& right) const {
  fail("json: '{}': key '{}{}' is {}, should be {}", source_, prefix_, printable(key),
       describe(found), right);
}

}  // namespace filigree
