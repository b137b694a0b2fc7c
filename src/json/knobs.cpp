#include "filigree/knobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree {
namespace {

std::string shown(const Knob::Json& value) {
  if (value.is_number_float()) return fmt::format("{}", value.get<double>());
  return value.is_string() ? value.get<std::string>() : value.dump();
}

template <typename Value>
Knob::Json json_of(const std::optional<Value>& value) {
  return value ? Knob::Json(*value) : Knob::Json();
}

// What a value must be: "a whole number from 1 to 1024".
std::string wanted(const Knob& knob) {
  switch (knob.kind) {
    case KnobKind::kFlag: return "true or false";
    case KnobKind::kCount: return "a whole number " + knob.range_text();
    case KnobKind::kNumber: return "a number " + knob.range_text();
    case KnobKind::kChoice:
    case KnobKind::kText: break;
  }
  return "a text";
}

bool fits(const Knob& knob, const Knob::Json& value) {
  switch (knob.kind) {
    case KnobKind::kFlag: return value.is_boolean();
    case KnobKind::kCount: {
      if (!value.is_number_integer()) return false;
      if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) return false;
      const auto number = value.get<std::int64_t>();
      return number >= knob.counts.min && number <= knob.counts.max;
    }
    case KnobKind::kNumber: {
      if (!value.is_number()) return false;
      const auto number = value.get<double>();
      const NumberRange& range = knob.numbers;
      return number <= range.max && (range.above_min ? number > range.min : number >= range.min);
    }
    case KnobKind::kChoice:
      return value.is_string() && std::find(knob.choices.begin(), knob.choices.end(),
                                            value.get<std::string>()) != knob.choices.end();
    case KnobKind::kText: return value.is_string();
  }
  return false;
}

template <typename Number>
Knob::Json number_in(std::string_view text) {
  Number number = {};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size()) return std::string(text);
  return number;
}

// "; did you mean 'dual_rate'?", names or keys as the wrong one is.
std::string suggestion_text(std::string_view wrong, const std::vector<Knob>& knobs) {
  std::vector<std::string> known;
  for (const Knob& knob : knobs)
    known.push_back(wrong.find('_') != std::string_view::npos ? knob.key : knob.name);
  const std::vector<std::string> nearest = nearest_names(wrong, known, 1);
  return nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest[0]);
}

template <typename Value>
void bind(Knob& knob, std::optional<Value>& value) {
  knob.get = [&value] { return json_of(value); };
  knob.take = [&value](const Knob::Json& given) {
    if (given.is_null())
      value.reset();
    else
      value = given.get<Value>();
  };
}

// A first value out of range stands for none.
template <typename Value>
void bind(Knob& knob, Value& value) {
  const Value unset = value;
  const bool may_be_unset = !fits(knob, Knob::Json(value));
  knob.get = [&value, unset, may_be_unset] {
    return may_be_unset && value == unset ? Knob::Json() : Knob::Json(value);
  };
  knob.take = [&value, unset](const Knob::Json& given) {
    value = given.is_null() ? unset : given.get<Value>();
  };
}

}  // namespace

std::string Knob::range_text() const {
  switch (kind) {
    case KnobKind::kCount:
      if (counts.max >= CountRange().max) return fmt::format("of at least {}", counts.min);
      return fmt::format("from {} to {}", counts.min, counts.max);
    case KnobKind::kNumber: {
      const bool unbounded = numbers.max >= NumberRange().max;
      if (numbers.above_min)
        return unbounded ? fmt::format("above {}", numbers.min)
                         : fmt::format("above {} and up to {}", numbers.min, numbers.max);
      if (!unbounded) return fmt::format("from {} to {}", numbers.min, numbers.max);
      return numbers.min <= -NumberRange().max ? "" : fmt::format("of at least {}", numbers.min);
    }
    case KnobKind::kChoice: return any_of_text(choices);
    case KnobKind::kFlag:
    case KnobKind::kText: break;
  }
  return "";
}

std::string Knob::default_text() const {
  if (!otherwise.empty() || fallback.is_null() || kind == KnobKind::kFlag ||
      fallback == Knob::Json(""))
    return otherwise;
  return unit.empty() ? shown(fallback) : fmt::format("{} {}", shown(fallback), unit);
}

std::string Knob::problem(const Knob::Json& value) const {
  // What is not given may be left so in so many words.
  if (fits(*this, value) || (value.is_null() && fallback.is_null())) return "";
  const std::string given = printable(shown(value));
  if (kind != KnobKind::kChoice) return fmt::format("'{}' is not {}", given, wanted(*this));
  return choices.size() == 2
             ? fmt::format("'{}' is neither {} nor {}", given, choices[0], choices[1])
             : fmt::format("'{}' is none of {}", given, join(choices, ", "));
}

Knob::Json Knob::value_of(std::string_view text) const {
  switch (kind) {
    case KnobKind::kCount: return number_in<std::int64_t>(text);
    case KnobKind::kNumber: return number_in<double>(text);
    case KnobKind::kFlag:
      if (text == "true" || text == "false") return text == "true";
      break;
    case KnobKind::kChoice:
    case KnobKind::kText: break;
  }
  return std::string(text);
}

void Knob::set(const Knob::Json& value) const {
  const std::string wrong = problem(value);
  require(wrong.empty(), "{}: {}", name, wrong);
  take(value);
}

template <typename Value>
void Knobs::add_bound(Knob knob, Value& value) {
  bind(knob, value);
  add(std::move(knob));
}

void Knobs::flag(const KnobText& text, bool& value) {
  add_bound(make(text, KnobKind::kFlag), value);
}

void Knobs::text(const KnobText& text, std::string& value) {
  add_bound(make(text, KnobKind::kText), value);
}

void Knobs::count(const KnobText& text, std::int64_t& value, const CountRange& range) {
  Knob knob = make(text, KnobKind::kCount);
  knob.counts = range;
  add_bound(std::move(knob), value);
}

void Knobs::count(const KnobText& text, int& value, const CountRange& range) {
  Knob knob = make(text, KnobKind::kCount);
  knob.counts = range;
  add_bound(std::move(knob), value);
}

void Knobs::count(const KnobText& text, std::size_t& value, const CountRange& range) {
  Knob knob = make(text, KnobKind::kCount);
  knob.counts = range;
  add_bound(std::move(knob), value);
}

void Knobs::count(const KnobText& text, std::optional<std::int64_t>& value,
                  const CountRange& range) {
  Knob knob = make(text, KnobKind::kCount);
  knob.counts = range;
  add_bound(std::move(knob), value);
}

void Knobs::add_choice(const KnobText& text, std::vector<std::string> names,
                       std::function<Knob::Json()> get,
                       std::function<void(const Knob::Json&)> take) {
  Knob knob = make(text, KnobKind::kChoice);
  knob.choices = std::move(names);
  knob.get = std::move(get);
  knob.take = std::move(take);
  add(std::move(knob));
}

void Knobs::number(const KnobText& text, double& value, const NumberRange& range) {
  Knob knob = make(text, KnobKind::kNumber);
  knob.numbers = range;
  add_bound(std::move(knob), value);
}

void Knobs::number(const KnobText& text, std::optional<double>& value, const NumberRange& range) {
  Knob knob = make(text, KnobKind::kNumber);
  knob.numbers = range;
  add_bound(std::move(knob), value);
}

Knob Knobs::make(const KnobText& text, KnobKind kind) const {
  Knob knob;
  knob.name = text.name;
  knob.key = text.key.empty() ? text.name : text.key;
  if (text.key.empty()) std::replace(knob.key.begin(), knob.key.end(), '-', '_');
  knob.what = text.what;
  knob.unit = text.unit;
  knob.otherwise = text.otherwise;
  knob.section = section_;
  knob.kind = kind;
  knob.level = text.level;
  knob.record = text.record;
  return knob;
}

void Knobs::add(Knob knob) {
  for (const Knob& other : all_)
    require(other.name != knob.name && other.key != knob.key, "the setting '{}' is there twice",
            knob.name);
  knob.fallback = knob.get();
  all_.push_back(std::move(knob));
}

void Knobs::add(Knobs others) {
  for (Knob& knob : others.all_) add(std::move(knob));
}

std::size_t Knobs::index_of(std::string_view name) const {
  const auto found =
      std::find_if(all_.begin(), all_.end(), [&](const Knob& knob) { return knob.name == name; });
  require(found != all_.end(), "there is no setting '{}'{}", printable(name),
          suggestion_text(name, all_));
  return static_cast<std::size_t>(found - all_.begin());
}

const Knob& Knobs::at(std::string_view name) const { return all_[index_of(name)]; }

void Knobs::derive(std::string_view name, std::optional<double>& value,
                   std::string_view otherwise) {
  Knob& knob = all_[index_of(name)];
  bind(knob, value);
  knob.fallback = knob.get();
  knob.otherwise = otherwise;
}

void Knobs::derive(std::string_view name, std::optional<std::int64_t>& value,
                   std::string_view otherwise) {
  Knob& knob = all_[index_of(name)];
  bind(knob, value);
  knob.fallback = knob.get();
  knob.otherwise = otherwise;
}

void Knobs::remove(std::string_view name) {
  all_.erase(all_.begin() + static_cast<std::ptrdiff_t>(index_of(name)));
}

void Knobs::set_record(KnobRecord record) {
  for (Knob& knob : all_) knob.record = record;
}

void Knobs::set_otherwise(std::string_view name, std::string_view otherwise) {
  all_[index_of(name)].otherwise = otherwise;
}

void Knobs::set_level(std::string_view name, KnobLevel level) {
  all_[index_of(name)].level = level;
}

nlohmann::ordered_json Knobs::values() const {
  Knob::Json values = Knob::Json::object();
  for (const Knob& knob : all_) values[knob.key] = knob.get();
  return values;
}

void Knobs::read(const nlohmann::ordered_json& values, const std::string& source) const {
  require(values.is_object(), "{}: settings are an object of names and values", source);
  std::vector<std::pair<const Knob*, const Knob::Json*>> given;
  for (const auto& item : values.items()) {
    const std::string& key = item.key();
    const Knob::Json& value = item.value();
    const auto knob =
        std::find_if(all_.begin(), all_.end(), [&](const Knob& one) { return one.key == key; });
    require(knob != all_.end(), "{}: there is no setting '{}'{}", source, printable(key),
            suggestion_text(key, all_));
    const std::string wrong = knob->problem(value);
    require(wrong.empty(), "{}: {}: {}", source, key, wrong);
    given.emplace_back(&*knob, &value);
  }
  for (const auto& [knob, value] : given) knob->take(*value);
}

}  // namespace filigree
