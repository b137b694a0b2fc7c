// The part of Jinja that chat templates are written in: texts, {{ expressions }}, for, if, set,
// comments and the marks that strip white space, with the settings that transformers uses
// (trim_blocks, lstrip_blocks). What a template uses beyond that is refused by its name: statements
// when the template is read, filters, tests, functions and methods when one is reached.
//
// Templates are untrusted: steps, the size of what they write and how deep they nest are bounded,
// and they see nothing but the values they are given.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace filigree::jinja {

inline constexpr std::size_t kMaxTemplateBytes = std::size_t{1} << 18;
inline constexpr std::size_t kMaxOutputBytes = std::size_t{1} << 22;
inline constexpr std::uint64_t kMaxSteps = 4'000'000;  // about as many values looked at or made
inline constexpr int kMaxDepth = 64;                   // of expressions, statements and lists

// What an expression can be. Lists and objects are shared and never change, but for namespaces.
struct Value {
  enum class Kind { kUndefined, kNone, kTruth, kInteger, kText, kList, kObject, kNamespace };
  using List = std::vector<Value>;
  using Object = std::map<std::string, Value, std::less<>>;

  Kind kind = Kind::kUndefined;
  std::int64_t integer = 0;  // and of kTruth
  std::string text = {};
  std::shared_ptr<const List> list = {};
  std::shared_ptr<Object> object = {};
  int depth = 0;  // of lists and objects

  static Value none();
  static Value of(bool truth);
  static Value of(std::int64_t integer);
  static Value of(std::string text);
  static Value of(List list);
  static Value of(Object object);
};

// Throws Error beginning with "chat template:".
std::string render(std::string_view source, const Value::Object& variables);

}  // namespace filigree::jinja
