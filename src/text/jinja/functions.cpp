#include "text/jinja/functions.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "text/unicode_whitespace.h"

namespace filigree::jinja {
namespace {

using Kind = Value::Kind;

constexpr std::uint64_t kStepsOfElement = 16;  // of lists, so that the budget bounds memory too

std::string_view kind_name(const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined: return "undefined";
    case Kind::kNone: return "none";
    case Kind::kTruth: return "a truth";
    case Kind::kInteger: return "an integer";
    case Kind::kText: return "a text";
    case Kind::kList: return "a list";
    case Kind::kObject: return "an object";
    case Kind::kNamespace: return "a namespace";
  }
  return "";
}

const Value& argument(const Arguments& arguments, std::size_t place, std::string_view of) {
  require(place < arguments.values.size(), "chat template: '{}' needs another argument", of);
  return arguments.values[place];
}

const std::string& text_argument(const Arguments& arguments, std::size_t place,
                                 std::string_view of) {
  const Value& value = argument(arguments, place, of);
  require(value.kind == Kind::kText, "chat template: '{}' is given {}, needs a text", of,
          kind_name(value));
  return value.text;
}

// Whether a character is among those to strip; white space where none are given.
bool is_stripped(std::string_view character, const std::string* given) {
  if (given == nullptr) return is_unicode_whitespace(utf8_sequence(character).code);
  for (const std::string_view each : characters_of(*given))
    if (each == character) return true;
  return false;
}

std::string stripped(std::string_view text, const std::string* characters, bool left, bool right) {
  while (left && !text.empty()) {
    const std::size_t length = utf8_sequence(text).length;
    if (!is_stripped(text.substr(0, length), characters)) break;
    text.remove_prefix(length);
  }
  while (right && !text.empty()) {
    std::size_t begin = text.size() - 1;
    while (begin > 0 && continues_utf8(text[begin])) --begin;
    if (!is_stripped(text.substr(begin), characters)) break;
    text.remove_suffix(text.size() - begin);
  }
  return std::string(text);
}

// Only of ASCII letters, which is what roles are written in.
std::string in_case(std::string text, bool upper) {
  for (char& c : text) {
    require(static_cast<unsigned char>(c) < 0x80,
            "chat template: upper and lower case are supported for ASCII texts only");
    if (upper && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (!upper && c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

std::string capitalized(const std::string& text, bool every_word) {
  std::string result = in_case(text, false);
  bool begins = true;
  for (char& c : result) {
    const bool letter = c >= 'a' && c <= 'z';
    if (letter && begins) c = static_cast<char>(c - 'a' + 'A');
    begins = every_word && !letter;
  }
  return result;
}

std::string replaced(const std::string& text, const std::string& from, const std::string& to,
                     Budget& budget) {
  require(!from.empty(), "chat template: 'replace' of an empty text is not supported");
  std::string result;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t found = std::min(text.find(from, at), text.size());
    result.append(text, at, found - at);
    if (found == text.size()) break;
    budget.spend_bytes(to.size());
    require(result.size() + to.size() <= kMaxOutputBytes,
            "chat template: a text of more than {} bytes", kMaxOutputBytes);
    result += to;
    at = found + from.size();
  }
  return result;
}

Value parts_of(const std::string& text, const std::string& separator, Budget& budget) {
  require(!separator.empty(), "chat template: 'split' by an empty text");
  Value::List parts;
  for (std::size_t at = 0;;) {
    budget.spend(kStepsOfElement);
    const std::size_t found = text.find(separator, at);
    parts.push_back(Value::of(text.substr(at, found == std::string::npos ? found : found - at)));
    if (found == std::string::npos) return Value::of(std::move(parts));
    at = found + separator.size();
  }
}

std::int64_t length_of(const Value& value, Budget& budget) {
  return static_cast<std::int64_t>(elements_of(value, "length", budget).size());
}

bool equal(const Value& a, const Value& b, Budget& budget) {
  budget.spend(1);
  const auto number = [](const Value& value) {
    return value.kind == Kind::kTruth || value.kind == Kind::kInteger;
  };
  if (number(a) && number(b)) return a.integer == b.integer;
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::kText: budget.spend_bytes(a.text.size()); return a.text == b.text;
    case Kind::kList:
      return std::equal(a.list->begin(), a.list->end(), b.list->begin(), b.list->end(),
                        [&](const Value& x, const Value& y) { return equal(x, y, budget); });
    case Kind::kObject:
      return std::equal(a.object->begin(), a.object->end(), b.object->begin(), b.object->end(),
                        [&](const auto& x, const auto& y) {
                          return x.first == y.first && equal(x.second, y.second, budget);
                        });
    case Kind::kNamespace: return a.object == b.object;
    default: return true;
  }
}

bool is_in(const Value& part, const Value& whole, Budget& budget) {
  if (whole.kind == Kind::kText) {
    require(part.kind == Kind::kText, "chat template: 'in' asks for {} in a text", kind_name(part));
    budget.spend_bytes(whole.text.size());
    return whole.text.find(part.text) != std::string::npos;
  }
  if (whole.kind == Kind::kObject)
    return part.kind == Kind::kText && whole.object->contains(part.text);
  const Value::List elements = elements_of(whole, "in", budget);
  return std::any_of(elements.begin(), elements.end(),
                     [&](const Value& element) { return equal(part, element, budget); });
}

}  // namespace

void Budget::spend(std::uint64_t steps) {
  require(steps <= left_, "chat template: it takes more than {} steps", kMaxSteps);
  left_ -= steps;
}

bool truth_of(const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined:
    case Kind::kNone: return false;
    case Kind::kTruth:
    case Kind::kInteger: return value.integer != 0;
    case Kind::kText: return !value.text.empty();
    case Kind::kList: return !value.list->empty();
    case Kind::kObject: return !value.object->empty();
    case Kind::kNamespace: return true;
  }
  return false;
}

std::string text_of(const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined: return "";
    case Kind::kNone: return "None";
    case Kind::kTruth: return value.integer != 0 ? "True" : "False";
    case Kind::kInteger: return fmt::format("{}", value.integer);
    case Kind::kText: return value.text;
    default: fail("chat template: writing {} is not supported", kind_name(value));
  }
}

std::int64_t integer_of(const Value& value, std::string_view of) {
  require(value.kind == Kind::kInteger || value.kind == Kind::kTruth,
          "chat template: '{}' is given {}, needs an integer", of, kind_name(value));
  return value.integer;
}

std::vector<std::string_view> characters_of(std::string_view text) {
  std::vector<std::string_view> characters;
  while (!text.empty()) {
    const std::size_t length = utf8_sequence(text).length;
    characters.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return characters;
}

Value::List elements_of(const Value& value, std::string_view of, Budget& budget) {
  Value::List elements;
  if (value.kind == Kind::kList) {
    budget.spend(kStepsOfElement * value.list->size());
    for (const Value& element : *value.list) budget.spend_bytes(element.text.size());
    return *value.list;
  }
  if (value.kind == Kind::kText) {
    budget.spend(kStepsOfElement * value.text.size());
    for (const std::string_view character : characters_of(value.text))
      elements.push_back(Value::of(std::string(character)));
  } else if (value.kind == Kind::kObject) {
    budget.spend(kStepsOfElement * value.object->size());
    for (const auto& [key, unused] : *value.object) elements.push_back(Value::of(key));
  } else if (value.kind != Kind::kUndefined) {
    fail("chat template: '{}' is given {}, needs a list", of, kind_name(value));
  }
  return elements;
}

bool holds(const Value& left, std::string_view comparison, const Value& right, Budget& budget) {
  if (comparison == "==") return equal(left, right, budget);
  if (comparison == "!=") return !equal(left, right, budget);
  if (comparison == "in") return is_in(left, right, budget);
  if (comparison == "not in") return !is_in(left, right, budget);
  int order = 0;
  if (left.kind == Kind::kText && right.kind == Kind::kText) {
    order = left.text.compare(right.text);
  } else {
    const std::int64_t a = integer_of(left, comparison), b = integer_of(right, comparison);
    order = a < b ? -1 : a > b ? 1 : 0;
  }
  return comparison == "<"    ? order < 0
         : comparison == ">"  ? order > 0
         : comparison == "<=" ? order <= 0
                              : order >= 0;
}

Value filter(const std::string& name, const Arguments& arguments, Budget& budget) {
  const Value& of = argument(arguments, 0, name);
  budget.spend_bytes(of.text.size());
  if (name == "trim") return Value::of(stripped(text_of(of), nullptr, true, true));
  if (name == "length" || name == "count") return Value::of(length_of(of, budget));
  if (name == "string") return Value::of(text_of(of));
  if (name == "safe") return of;
  if (name == "upper" || name == "lower") return Value::of(in_case(text_of(of), name == "upper"));
  if (name == "capitalize" || name == "title")
    return Value::of(capitalized(text_of(of), name == "title"));
  if (name == "default" || name == "d") {
    const bool also_false = arguments.values.size() > 2 && truth_of(arguments.values[2]);
    const bool missing = of.kind == Kind::kUndefined || (also_false && !truth_of(of));
    if (!missing) return of;
    return arguments.values.size() > 1 ? arguments.values[1] : Value::of(std::string());
  }
  if (name == "first" || name == "last") {
    const Value::List elements = elements_of(of, name, budget);
    if (elements.empty()) return {};
    return name == "first" ? elements.front() : elements.back();
  }
  if (name == "list") return Value::of(elements_of(of, name, budget));
  if (name == "join") {
    const std::string between =
        arguments.values.size() > 1 ? text_of(arguments.values[1]) : std::string();
    std::string text;
    bool first = true;
    for (const Value& element : elements_of(of, name, budget)) {
      if (!std::exchange(first, false)) text += between;
      text += text_of(element);
      budget.spend_bytes(between.size());
      require(text.size() <= kMaxOutputBytes, "chat template: a text of more than {} bytes",
              kMaxOutputBytes);
    }
    return Value::of(std::move(text));
  }
  if (name == "replace")
    return Value::of(replaced(text_of(of), text_argument(arguments, 1, name),
                              text_argument(arguments, 2, name), budget));
  fail(
      "chat template: the filter '{}' is not supported; trim, length, string, default, first, "
      "last, list, join, replace, upper, lower, capitalize, title and safe are",
      printable(name));
}

bool test(const std::string& name, const Arguments& arguments) {
  const Value& of = argument(arguments, 0, name);
  if (name == "defined") return of.kind != Kind::kUndefined;
  if (name == "undefined") return of.kind == Kind::kUndefined;
  if (name == "none") return of.kind == Kind::kNone;
  if (name == "string") return of.kind == Kind::kText;
  if (name == "number") return of.kind == Kind::kInteger || of.kind == Kind::kTruth;
  if (name == "integer") return of.kind == Kind::kInteger;
  if (name == "boolean") return of.kind == Kind::kTruth;
  if (name == "mapping") return of.kind == Kind::kObject;
  if (name == "iterable" || name == "sequence")
    return of.kind == Kind::kList || of.kind == Kind::kText || of.kind == Kind::kObject ||
           of.kind == Kind::kUndefined;
  if (name == "true") return of.kind == Kind::kTruth && of.integer != 0;
  if (name == "false") return of.kind == Kind::kTruth && of.integer == 0;
  if (name == "odd" || name == "even") return (integer_of(of, name) % 2 != 0) == (name == "odd");
  fail(
      "chat template: the test '{}' is not supported; defined, undefined, none, string, number, "
      "integer, boolean, mapping, iterable, sequence, true, false, odd and even are",
      printable(name));
}

Value function(const std::string& name, const Arguments& arguments, Budget& budget) {
  if (name == "raise_exception")
    fail("chat template: it says: {}", printable(text_argument(arguments, 0, name), 300));
  if (name == "namespace") {
    Value result{.kind = Kind::kNamespace, .object = std::make_shared<Value::Object>()};
    for (const auto& [key, value] : arguments.named) {
      require(value.kind != Kind::kNamespace,
              "chat template: a namespace inside another value is not supported");
      (*result.object)[key] = value;
    }
    return result;
  }
  if (name == "range") {
    const bool both = arguments.values.size() > 1;
    const std::int64_t begin = both ? integer_of(arguments.values[0], name) : 0;
    const std::int64_t end = integer_of(argument(arguments, both ? 1 : 0, name), name);
    require(arguments.values.size() <= 2, "chat template: 'range' with a step is not supported");
    Value::List list;
    for (std::int64_t i = begin; i < end; ++i) {
      budget.spend(kStepsOfElement);
      list.push_back(Value::of(i));
    }
    return Value::of(std::move(list));
  }
  fail(
      "chat template: the function '{}' is not supported; raise_exception, namespace and range are",
      printable(name));
}

Value method(const Value& of, const std::string& name, const Arguments& arguments, Budget& budget) {
  require(of.kind != Kind::kUndefined, "chat template: '.{}()' of something undefined",
          printable(name));
  budget.spend_bytes(of.text.size());
  if (of.kind == Kind::kObject && name == "get") {
    const auto found = of.object->find(text_argument(arguments, 0, name));
    if (found != of.object->end()) return found->second;
    return arguments.values.size() > 1 ? arguments.values[1] : Value::none();
  }
  if (of.kind == Kind::kText) {
    const bool strips = name == "strip" || name == "lstrip" || name == "rstrip";
    if (strips) {
      const std::string* characters =
          arguments.values.empty() ? nullptr : &text_argument(arguments, 0, name);
      return Value::of(stripped(of.text, characters, name != "rstrip", name != "lstrip"));
    }
    if (name == "startswith")
      return Value::of(of.text.starts_with(text_argument(arguments, 0, name)));
    if (name == "endswith") return Value::of(of.text.ends_with(text_argument(arguments, 0, name)));
    if (name == "split" && arguments.values.size() == 1)
      return parts_of(of.text, text_argument(arguments, 0, name), budget);
    if (name == "replace" && arguments.values.size() == 2)
      return Value::of(replaced(of.text, text_argument(arguments, 0, name),
                                text_argument(arguments, 1, name), budget));
    if (name == "upper" || name == "lower") return Value::of(in_case(of.text, name == "upper"));
    if (name == "capitalize" || name == "title")
      return Value::of(capitalized(of.text, name == "title"));
  }
  fail(
      "chat template: the method '{}' of {} is not supported; strip, lstrip, rstrip, startswith, "
      "endswith, split, replace, upper, lower, capitalize and title of texts and get of objects "
      "are",
      printable(name), kind_name(of));
}

}  // namespace filigree::jinja
