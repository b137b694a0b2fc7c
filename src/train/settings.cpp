#include <algorithm>
#include <cstdlib>

#include "filigree/error.h"
#include "filigree/names.h"
#include "filigree/train.h"

namespace filigree {
namespace {

nlohmann::json json_of(const SettingValue& value) {
  return std::visit(
      [](const auto& held) -> nlohmann::json {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, NoValue>)
          return nullptr;
        else
          return held;
      },
      value);
}

// Of plain values only.
template <typename Json>
SettingValue value_of(const Json& value, const std::string& name) {
  if (value.is_boolean()) return value.template get<bool>();
  if (value.is_number_unsigned()) return value.template get<std::uint64_t>();
  if (value.is_number_integer()) return value.template get<std::int64_t>();
  if (value.is_number()) return value.template get<double>();
  if (value.is_string()) return value.template get<std::string>();
  require(value.is_null(), "the setting '{}' is no plain value", printable(name));
  return NoValue();
}

const Setting* find(const Settings& settings, const std::string& name) {
  const auto found = std::find_if(settings.all().begin(), settings.all().end(),
                                  [&](const Setting& setting) { return setting.name == name; });
  return found != settings.all().end() ? &*found : nullptr;
}

}  // namespace

Settings::Settings(std::initializer_list<Setting> settings) {
  for (const Setting& setting : settings) add(setting);
}

void Settings::add(Setting setting) {
  require(find(*this, setting.name) == nullptr, "settings: '{}' is there twice", setting.name);
  all_.push_back(std::move(setting));
}

void Settings::add(const Settings& others) {
  for (const Setting& setting : others.all()) add(setting);
}

nlohmann::json Settings::to_json() const {
  nlohmann::json json = nlohmann::json::object();
  for (const Setting& setting : all_) json[setting.name] = json_of(setting.value);
  return json;
}

Settings Settings::from_json(const nlohmann::json& json, const std::string& source) {
  require(json.is_object(), "{}: the settings are no object", source);
  Settings settings;
  for (const auto& [name, value] : json.items()) {
    try {
      settings.add({name, value_of(value, name)});
    } catch (const Error& error) {
      fail("{}: {}", source, error.what());
    }
  }
  return settings;
}

Settings recorded(const Knobs& knobs, const Knobs& usual) {
  Settings settings;
  for (const Knob& knob : knobs.all()) {
    const Knob::Json value = knob.get();
    if (knob.record == KnobRecord::kAlways ||
        (knob.record == KnobRecord::kUnlessDefault && value != usual.at(knob.name).get()))
      settings.add({knob.key, value_of(value, knob.name)});
  }
  return settings;
}

double decimal(float value) { return std::strtod(fmt::format("{}", value).c_str(), nullptr); }

void require_same_settings(const Settings& stored, const Settings& wanted) {
  for (const Setting& setting : wanted.all()) {
    const Setting* before = find(stored, setting.name);
    if (before == nullptr)
      fail("resume: the run was started without the setting '{}'", setting.name);
    // As JSON, since that does not tell whole numbers from others and signed from unsigned.
    const nlohmann::json was = json_of(before->value), is = json_of(setting.value);
    require(was == is,
            "resume: '{}' was {} when the run was started and is {} now; start a new run or give "
            "the old value",
            setting.name, printable(was.dump()), printable(is.dump()));
  }
  for (const Setting& setting : stored.all())
    require(find(wanted, setting.name) != nullptr,
            "resume: the run was started with the setting '{}', which there is no more",
            printable(setting.name));
}

}  // namespace filigree
