// Settings that users may change, each declared once.
//
// A struct of settings has a function `Knobs knobs_of(Settings&)` beside it that gives every field
// a name, a sentence, a unit and a range. The option of the command line, its help, the settings in
// JSON, what a resumed run must have the same and docs/settings.md are all made from that one line:
//
//   Knobs knobs_of(ExampleSettings& settings) {
//     Knobs knobs;
//     knobs.section("Multiplier");
//     knobs.number({.name = "dual-rate", .what = "how fast lambda follows the gap"}, settings.rate,
//                  {.min = 0.0, .max = 1e12, .above_min = true});
//     return knobs;
//   }
//
// A knob refers to the field it was made from, which must outlive it. The field's value when the
// knob is made is the default; one out of range, as a batch of 0, stands for a value that is not
// given.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "filigree/enum_names.h"

namespace filigree {

enum class KnobKind { kFlag, kCount, kNumber, kChoice, kText };

// Where a user meets a knob.
enum class KnobLevel {
  kBasic,   // an option that --help shows
  kMore,    // an option that --help-all shows
  kRecipe,  // no option: a key of the settings that --recipe reads
};

// Whether a run that is resumed must have the same value.
enum class KnobRecord {
  kAlways,
  kUnlessDefault,  // of knobs that earlier versions did not have
  kByItsPart,      // the part of the run that uses the value records what follows from it
  kNever,          // it does not change the result
};

struct KnobText {
  std::string_view name;  // "dual-rate"
  std::string_view what;  // without a full stop
  std::string_view unit = {};
  KnobLevel level = KnobLevel::kRecipe;
  KnobRecord record = KnobRecord::kAlways;
  std::string_view key = {};        // in JSON; empty: the name with underscores
  std::string_view otherwise = {};  // what holds where no value is given, in words
};

struct NumberRange {
  double min = 0.0, max = 1e12;
  bool above_min = false;  // min itself is not allowed
};

struct CountRange {
  std::int64_t min = 0, max = std::int64_t{1} << 40;
};

struct Knob {
  using Json = nlohmann::ordered_json;

  std::string name, key, what, unit, section, otherwise;
  KnobKind kind = KnobKind::kNumber;
  KnobLevel level = KnobLevel::kRecipe;
  KnobRecord record = KnobRecord::kAlways;
  NumberRange numbers;
  CountRange counts;
  std::vector<std::string> choices;
  Json fallback;                          // null: not given
  std::function<Json()> get;              // null: not given
  std::function<void(const Json&)> take;  // without a check

  // "from 0 to 1", "of at least 1", "log or linear"; empty for flags and texts.
  std::string range_text() const;
  // The default as help shows it, with its unit: "0.01 nats".
  std::string default_text() const;

  // What is wrong with a value, "'x' is not a number from 0 to 1", or "".
  std::string problem(const Json& value) const;
  // What is written on a command line as a value; a text that is none of the knob's kind stays one.
  Json value_of(std::string_view text) const;
  // Throws Error, naming the knob, where the value has a problem.
  void set(const Json& value) const;
};

class Knobs {
 public:
  // The heading under which the following stand.
  void section(std::string_view name) { section_ = name; }

  void flag(const KnobText& text, bool& value);
  void count(const KnobText& text, std::int64_t& value, const CountRange& range);
  void count(const KnobText& text, int& value, const CountRange& range);
  void count(const KnobText& text, std::size_t& value, const CountRange& range);
  void count(const KnobText& text, std::optional<std::int64_t>& value, const CountRange& range);
  void number(const KnobText& text, double& value, const NumberRange& range);
  void number(const KnobText& text, std::optional<double>& value, const NumberRange& range);
  void text(const KnobText& text, std::string& value);

  template <NamedEnum Enum>
  void choice(const KnobText& text, Enum& value) {
    add_choice(text, names_of<Enum>(), [&value] { return Knob::Json(std::string(name_of(value))); },
               [&value](const Knob::Json& given) {
                 value = *find_name<Enum>(given.get<std::string>());
               });
  }
  template <NamedEnum Enum>
  void choice(const KnobText& text, std::optional<Enum>& value) {
    add_choice(
        text, names_of<Enum>(),
        [&value] { return value ? Knob::Json(std::string(name_of(*value))) : Knob::Json(); },
        [&value](const Knob::Json& given) {
          value = given.is_null() ? std::optional<Enum>()
                                  : find_name<Enum>(given.get<std::string>());
        });
  }

  // All of `others`, which stand under their own headings.
  void add(Knobs others);

  // The knob `name` sets this field instead: of settings that are derived from others, as
  // `otherwise` says, unless they are given.
  void derive(std::string_view name, std::optional<double>& value, std::string_view otherwise);
  void derive(std::string_view name, std::optional<std::int64_t>& value,
              std::string_view otherwise);
  void remove(std::string_view name);
  void set_level(std::string_view name, KnobLevel level);
  // Of all of them.
  void set_record(KnobRecord record);
  void set_otherwise(std::string_view name, std::string_view otherwise);

  const std::vector<Knob>& all() const { return all_; }
  // Throws Error for a name that there is not.
  const Knob& at(std::string_view name) const;

  // All values by key.
  nlohmann::ordered_json values() const;
  // Sets those that `values` has. Throws Error, naming `source`, for a key that is no knob's, with
  // the nearest, and for a value out of range; nothing is set then.
  void read(const nlohmann::ordered_json& values, const std::string& source) const;

 private:
  Knob make(const KnobText& text, KnobKind kind) const;
  void add_choice(const KnobText& text, std::vector<std::string> names,
                  std::function<Knob::Json()> get, std::function<void(const Knob::Json&)> take);
  template <typename Value>
  void add_bound(Knob knob, Value& value);
  void add(Knob knob);
  // Throws Error for a name that there is not.
  std::size_t index_of(std::string_view name) const;

  std::vector<Knob> all_;
  std::string section_;
};

}  // namespace filigree
