// A template as a tree.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace filigree::jinja {

struct Expression {
  enum class Kind {
    kLiteral,  // none, truths, integers, texts: `name` says which
    kName,
    kList,
    kObject,     // keys and values in turn
    kAttribute,  // parts[0].name
    kItem,       // parts[0][parts[1]]
    kSlice,      // parts[0][parts[1]:parts[2]:parts[3]], each may be null
    kCall,       // of the name or attribute parts[0]
    kFilter,     // parts[0] | name(...)
    kTest,       // parts[0] is name(...)
    kNot,
    kNegative,
    kBinary,   // name is the operator
    kCompare,  // parts[0] operators[0] parts[1] operators[1] ...
    kChoice,   // parts[0] if parts[1] else parts[2], which may be null
  };
  using Pointer = std::unique_ptr<Expression>;

  Kind kind = Kind::kLiteral;
  std::string name = {};
  std::string text = {};
  std::int64_t integer = 0;
  std::vector<Pointer> parts = {};
  std::vector<std::string> operators = {};
  std::vector<std::pair<std::string, Pointer>> named = {};  // arguments
};

struct Statement {
  enum class Kind { kText, kOutput, kIf, kFor, kSet };
  Kind kind = Kind::kText;
  std::string text = {};                // of kText; the name that kFor and kSet give a value to
  std::string attribute = {};           // of kSet: of the namespace `text`
  Expression::Pointer expression = {};  // value, condition or list
  Expression::Pointer condition = {};   // of kFor: of the elements
  std::vector<Statement> body = {};
  std::vector<Statement> otherwise = {};  // of kIf and kFor
};

// Throws Error for what is no template, and for statements that are not supported, by name.
std::vector<Statement> parse(std::string_view source);

}  // namespace filigree::jinja
