// What templates can do with values: operators, filters, tests, functions and methods.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/jinja.h"

namespace filigree::jinja {

// What a template may still do.
class Budget {
 public:
  // Throws Error when there is none left.
  void spend(std::uint64_t steps);
  void spend_bytes(std::size_t bytes) { spend(1 + bytes / 64); }

 private:
  std::uint64_t left_ = kMaxSteps;
};

struct Arguments {
  std::vector<Value> values;  // of filters and tests, first what they stand behind
  std::map<std::string, Value> named;
};

bool truth_of(const Value& value);
// As {{ }} writes it. Throws Error for lists and objects.
std::string text_of(const Value& value);
// Throws Error that names the operator when it is none.
std::int64_t integer_of(const Value& value, std::string_view of);
// Of a list, the characters of a text, the keys of an object.
Value::List elements_of(const Value& value, std::string_view of, Budget& budget);
std::vector<std::string_view> characters_of(std::string_view text);

bool holds(const Value& left, std::string_view comparison, const Value& right, Budget& budget);

// Throw Error that names what is not known, and what is.
Value filter(const std::string& name, const Arguments& arguments, Budget& budget);
bool test(const std::string& name, const Arguments& arguments);
Value function(const std::string& name, const Arguments& arguments, Budget& budget);
Value method(const Value& of, const std::string& name, const Arguments& arguments, Budget& budget);

}  // namespace filigree::jinja
