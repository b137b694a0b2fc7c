// What decides the result of a run, as values with names. Each part of a run (what is trained, the
// data, the objective, the optimiser, the loop) says what of it does; the loop puts them together,
// stores them with every checkpoint, and refuses to resume a run whose settings are others. So
// nothing that matters depends on a caller who remembers it.
//
//   Settings({{"batch", 16}, {"clip", 1.0}, {"objective", "log"}})
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace filigree {

// There is none. Its copy is not trivial on purpose: of trivial types and strings alone libstdc++
// 12 makes a variant that believes never to be without a value, and where a string's copy fails for
// want of memory, it destroys one that was never there.
struct NoValue {
  NoValue() = default;
  NoValue(const NoValue&) noexcept {}
  NoValue& operator=(const NoValue&) noexcept { return *this; }
};

using SettingValue = std::variant<NoValue, bool, std::int64_t, std::uint64_t, double, std::string>;

struct Setting {
  std::string name;
  SettingValue value;
};

class Settings {
 public:
  Settings() = default;
  Settings(std::initializer_list<Setting> settings);

  // Both throw Error for a name that is there already.
  void add(Setting setting);
  void add(const Settings& others);

  const std::vector<Setting>& all() const { return all_; }

  nlohmann::json to_json() const;
  // Throws Error, naming `source`, for anything but plain values under names.
  static Settings from_json(const nlohmann::json& json, const std::string& source);

 private:
  std::vector<Setting> all_;
};

// The shortest decimal number that is read back as this float: 0.003, not 0.003000000026.
double decimal(float value);

template <typename Value>
SettingValue setting_of(const std::optional<Value>& value) {
  return value ? SettingValue(*value) : SettingValue();
}

// Throws Error naming the first of the wanted settings that differs from the stored one, and one
// that was stored and is wanted no more.
void require_same_settings(const Settings& stored, const Settings& wanted);

}  // namespace filigree
