#include "json/json.h"

#include <utility>
#include <vector>

#include "base/atomic_file.h"
#include "base/mapped_file.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "json/events.h"

namespace filigree {
namespace {

using Json = nlohmann::json;

class DocumentBuilder final : public JsonEvents {
 public:
  using JsonEvents::JsonEvents;

  Json take() { return std::move(root_); }

 private:
  void null() override { add(nullptr); }
  void boolean(bool value) override { add(value); }
  void negative(std::int64_t value) override { add(value); }
  void natural(std::uint64_t value) override { add(value); }
  void real(double value, const std::string&) override { add(value); }
  void string(std::string&& value) override { add(std::move(value)); }
  void begin_object() override { open_.push_back(add(Json::object())); }
  void begin_array() override { open_.push_back(add(Json::array())); }
  void end_object() override { open_.pop_back(); }
  void end_array() override { open_.pop_back(); }

  void key(std::string&& name) override {
    auto& members = open_.back()->get_ref<Json::object_t&>();
    const auto [member, inserted] = members.try_emplace(std::move(name));
    if (!inserted)
      refuse(fmt::format("the key '{}' appears twice in one object", printable(member->first)));
    member_ = &member->second;
  }

  // Puts a value where the next one belongs: at the root, at an array's end, or behind the last
  // key.
  Json* add(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (open_.back()->is_array()) {
      open_.back()->push_back(std::move(value));
      return &open_.back()->back();
    }
    *member_ = std::move(value);
    return member_;
  }

  Json root_;
  std::vector<Json*> open_;  // containers from the root to the current one; none grows while a
                             // later one is open, so the pointers stay valid
  Json* member_ = nullptr;   // where the value of the last key goes
};

}  // namespace

Json parse_json(std::string_view text, const std::string& source, const JsonLimits& limits) {
  DocumentBuilder builder(fmt::format("json: '{}'", source), text, limits);
  builder.run();
  return builder.take();
}

Json read_json(const std::filesystem::path& path, const JsonLimits& limits) {
  return parse_json(MappedFile::open(path)->text(), path.string(), limits);
}

std::string json_text(const std::filesystem::path& path, const Json& value) {
  try {
    return value.dump(2) + "\n";
  } catch (const Json::exception&) {
    fail("json: cannot write '{}': a string in it is not UTF-8", path.string());
  }
}

void write_json(const std::filesystem::path& path, const Json& value) {
  write_file_atomically(path, json_text(path, value));
}

}  // namespace filigree
