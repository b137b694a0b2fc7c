#include <algorithm>
#include <optional>
#include <utility>

#include "base/utf8.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "text/jinja/functions.h"
#include "text/jinja/jinja.h"
#include "text/jinja/syntax.h"

namespace filigree::jinja {

Value Value::none() { return {.kind = Kind::kNone}; }
Value Value::of(bool truth) { return {.kind = Kind::kTruth, .integer = truth ? 1 : 0}; }
Value Value::of(std::int64_t integer) { return {.kind = Kind::kInteger, .integer = integer}; }
Value Value::of(std::string text) { return {.kind = Kind::kText, .text = std::move(text)}; }

Value Value::of(List list) {
  int depth = 0;
  for (const Value& element : list) depth = std::max(depth, element.depth + 1);
  require(depth <= kMaxDepth, "chat template: lists nested more than {} deep", kMaxDepth);
  return {
      .kind = Kind::kList, .list = std::make_shared<const List>(std::move(list)), .depth = depth};
}

Value Value::of(Object object) {
  int depth = 0;
  for (const auto& [key, value] : object) depth = std::max(depth, value.depth + 1);
  require(depth <= kMaxDepth, "chat template: objects nested more than {} deep", kMaxDepth);
  return {
      .kind = Kind::kObject, .object = std::make_shared<Object>(std::move(object)), .depth = depth};
}

namespace {

using EKind = Expression::Kind;
using VKind = Value::Kind;

class Evaluation {
 public:
  explicit Evaluation(const Value::Object& variables) { scopes_.push_back(variables); }

  void run(const std::vector<Statement>& statements) {
    for (const Statement& statement : statements) run(statement);
  }
  std::string output() { return std::move(output_); }

 private:
  void run(const Statement& statement) {
    budget_.spend(1);
    switch (statement.kind) {
      case Statement::Kind::kText: write(statement.text); break;
      case Statement::Kind::kOutput: write(text_of(value(*statement.expression))); break;
      case Statement::Kind::kIf:
        run(truth_of(value(*statement.expression)) ? statement.body : statement.otherwise);
        break;
      case Statement::Kind::kFor: loop(statement); break;
      case Statement::Kind::kSet: set(statement); break;
    }
  }

  void write(std::string_view text) {
    budget_.spend_bytes(text.size());
    require(text.size() <= kMaxOutputBytes - output_.size(),
            "chat template: it writes more than {} bytes", kMaxOutputBytes);
    output_ += text;
  }

  void set(const Statement& statement) {
    Value result = value(*statement.expression);
    if (!statement.attribute.empty()) unnamespaced(result);
    if (statement.attribute.empty()) {
      scopes_.back()[statement.text] = std::move(result);
      return;
    }
    const Value* target = find(statement.text);
    require(target != nullptr && target->kind == VKind::kNamespace,
            "chat template: '{}' is no namespace; its attributes cannot be set",
            printable(statement.text));
    (*target->object)[statement.attribute] = std::move(result);
  }

  void loop(const Statement& statement) {
    const Value all = value(*statement.expression);
    Value::List elements = elements_of(all, "for", budget_);
    if (statement.condition) {
      Value::List kept;
      for (const Value& element : elements) {
        scopes_.push_back({{statement.text, element}});
        if (truth_of(value(*statement.condition))) kept.push_back(element);
        scopes_.pop_back();
      }
      elements = std::move(kept);
    }
    const auto count = static_cast<std::int64_t>(elements.size());
    for (std::int64_t i = 0; i < count; ++i) {
      budget_.spend(10);
      Value::Object position = {
          {"index", Value::of(i + 1)},        {"index0", Value::of(i)},
          {"revindex", Value::of(count - i)}, {"revindex0", Value::of(count - i - 1)},
          {"first", Value::of(i == 0)},       {"last", Value::of(i + 1 == count)},
          {"length", Value::of(count)}};
      const auto at = static_cast<std::size_t>(i);
      if (i > 0) position["previtem"] = elements[at - 1];
      if (i + 1 < count) position["nextitem"] = elements[at + 1];
      scopes_.push_back({{statement.text, elements[at]}, {"loop", Value::of(std::move(position))}});
      run(statement.body);
      scopes_.pop_back();
    }
    if (count == 0) run(statement.otherwise);
  }

  const Value* find(const std::string& name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
      if (const auto found = scope->find(name); found != scope->end()) return &found->second;
    return nullptr;
  }

  Value value(const Expression& e) {
    Value result = plain_value(e);
    budget_.spend_bytes(result.text.size());
    return result;
  }

  Value plain_value(const Expression& e) {
    switch (e.kind) {
      case EKind::kLiteral: return literal(e);
      case EKind::kName: {
        const Value* found = find(e.name);
        return found == nullptr ? Value() : *found;
      }
      case EKind::kList: {
        Value::List list;
        for (const auto& part : e.parts) list.push_back(unnamespaced(value(*part)));
        return Value::of(std::move(list));
      }
      case EKind::kObject: {
        Value::Object object;
        for (std::size_t i = 0; i < e.parts.size(); i += 2) {
          const Value key = value(*e.parts[i]);
          require(key.kind == VKind::kText, "chat template: a key of an object is no text");
          object[key.text] = unnamespaced(value(*e.parts[i + 1]));
        }
        return Value::of(std::move(object));
      }
      case EKind::kAttribute: return attribute(value(*e.parts[0]), e.name);
      case EKind::kItem: {
        const Value of = value(*e.parts[0]), key = value(*e.parts[1]);
        return item(of, key);
      }
      case EKind::kSlice: return slice(e);
      case EKind::kCall: return call(e);
      case EKind::kFilter: {
        Arguments arguments = arguments_of(e);
        return filter(e.name, arguments, budget_);
      }
      case EKind::kTest: {
        Arguments arguments = arguments_of(e);
        return Value::of(test(e.name, arguments));
      }
      case EKind::kNot: return Value::of(!truth_of(value(*e.parts[0])));
      case EKind::kNegative: return Value::of(-integer_of(value(*e.parts[0]), "-"));
      case EKind::kBinary: return binary(e);
      case EKind::kCompare: return compare(e);
      case EKind::kChoice:
        if (truth_of(value(*e.parts[1]))) return value(*e.parts[0]);
        return e.parts[2] ? value(*e.parts[2]) : Value();
    }
    return {};
  }

  // One inside itself would never go away.
  static Value unnamespaced(Value value) {
    require(value.kind != VKind::kNamespace,
            "chat template: a namespace inside another value is not supported");
    return value;
  }

  static Value literal(const Expression& e) {
    if (e.name == "text") return Value::of(e.text);
    if (e.name == "integer") return Value::of(e.integer);
    if (e.name == "none" || e.name == "None") return Value::none();
    return Value::of(e.name == "true" || e.name == "True");
  }

  static Value attribute(const Value& of, const std::string& name) {
    require(of.kind != VKind::kUndefined, "chat template: '.{}' of something undefined",
            printable(name));
    if (of.object) {
      const auto found = of.object->find(name);
      if (found != of.object->end()) return found->second;
    }
    return {};
  }

  static Value item(const Value& of, const Value& key) {
    require(of.kind != VKind::kUndefined, "chat template: '[{}]' of something undefined",
            key.kind == VKind::kText ? printable(key.text) : "...");
    if (key.kind == VKind::kText) return attribute(of, key.text);
    if (key.kind != VKind::kInteger) return {};
    if (of.kind == VKind::kList) {
      const auto size = static_cast<std::int64_t>(of.list->size());
      const std::int64_t at = key.integer < 0 ? key.integer + size : key.integer;
      return at < 0 || at >= size ? Value() : (*of.list)[static_cast<std::size_t>(at)];
    }
    if (of.kind != VKind::kText) return {};
    const std::vector<std::string_view> characters = characters_of(of.text);
    const auto size = static_cast<std::int64_t>(characters.size());
    const std::int64_t at = key.integer < 0 ? key.integer + size : key.integer;
    if (at < 0 || at >= size) return {};
    return Value::of(std::string(characters[static_cast<std::size_t>(at)]));
  }

  // As Python's of lists and texts.
  Value slice(const Expression& e) {
    const Value of = value(*e.parts[0]);
    require(of.kind == VKind::kList || of.kind == VKind::kText,
            "chat template: only a list or text can be sliced");
    const auto bound = [&](std::size_t part) -> std::optional<std::int64_t> {
      if (!e.parts[part]) return std::nullopt;
      const Value given = value(*e.parts[part]);
      if (given.kind == VKind::kNone) return std::nullopt;
      return integer_of(given, "a slice");
    };
    const std::optional<std::int64_t> first = bound(1), last = bound(2);
    const std::int64_t step = bound(3).value_or(1);
    require(step != 0, "chat template: a slice with a step of 0");
    const Value::List elements = elements_of(of, "a slice", budget_);
    const auto size = static_cast<std::int64_t>(elements.size());
    const auto place = [&](std::optional<std::int64_t> given, std::int64_t otherwise) {
      if (!given) return otherwise;
      const std::int64_t least = step > 0 ? 0 : -1, most = step > 0 ? size : size - 1;
      if (*given < 0) return *given < -size ? least : std::max(*given + size, least);
      return std::min(*given, most);
    };
    const std::int64_t begin = place(first, step > 0 ? 0 : size - 1);
    const std::int64_t end = place(last, step > 0 ? size : -1);
    const std::int64_t stride = std::clamp(step, -size - 1, size + 1);
    Value::List kept;
    for (std::int64_t i = begin; stride > 0 ? i < end : i > end; i += stride)
      kept.push_back(elements[static_cast<std::size_t>(i)]);
    if (of.kind == VKind::kList) return Value::of(std::move(kept));
    std::string text;
    for (const Value& character : kept) text += character.text;
    return Value::of(std::move(text));
  }

  Arguments arguments_of(const Expression& e) {
    Arguments arguments;
    for (const auto& part : e.parts) arguments.values.push_back(value(*part));
    for (const auto& [name, part] : e.named) arguments.named[name] = value(*part);
    return arguments;
  }

  Value call(const Expression& e) {
    const Expression& called = *e.parts[0];
    Arguments arguments;
    for (std::size_t i = 1; i < e.parts.size(); ++i) arguments.values.push_back(value(*e.parts[i]));
    for (const auto& [name, part] : e.named) arguments.named[name] = value(*part);
    if (called.kind == EKind::kAttribute)
      return method(value(*called.parts[0]), called.name, arguments, budget_);
    require(called.kind == EKind::kName, "chat template: only functions and methods can be called");
    return function(called.name, arguments, budget_);
  }

  Value binary(const Expression& e) {
    const Value left = value(*e.parts[0]);
    if (e.name == "and") return truth_of(left) ? value(*e.parts[1]) : left;
    if (e.name == "or") return truth_of(left) ? left : value(*e.parts[1]);
    const Value right = value(*e.parts[1]);
    if (e.name == "~") return joined(text_of(left), text_of(right));
    if (e.name == "+" && left.kind == VKind::kText && right.kind == VKind::kText)
      return joined(left.text, right.text);
    if (e.name == "+" && left.kind == VKind::kList && right.kind == VKind::kList) {
      Value::List list = elements_of(left, "+", budget_);
      for (Value& element : elements_of(right, "+", budget_)) list.push_back(std::move(element));
      return Value::of(std::move(list));
    }
    const std::int64_t a = integer_of(left, e.name), b = integer_of(right, e.name);
    std::int64_t result = 0;
    bool overflow = false;
    if (e.name == "+") {
      overflow = __builtin_add_overflow(a, b, &result);
    } else if (e.name == "-") {
      overflow = __builtin_sub_overflow(a, b, &result);
    } else if (e.name == "*") {
      overflow = __builtin_mul_overflow(a, b, &result);
    } else {
      require(b != 0, "chat template: a division by 0");
      if (b == -1) {
        overflow = e.name == "//" && __builtin_sub_overflow(std::int64_t{0}, a, &result);
      } else {
        const bool down = a % b != 0 && (a < 0) != (b < 0);  // Python rounds down
        result = e.name == "//" ? a / b - (down ? 1 : 0) : a % b + (down ? b : 0);
      }
    }
    require(!overflow, "chat template: a number beyond 64 bits");
    return Value::of(result);
  }

  Value joined(std::string left, const std::string& right) {
    budget_.spend_bytes(left.size() + right.size());
    require(left.size() + right.size() <= kMaxOutputBytes,
            "chat template: a text of more than {} bytes", kMaxOutputBytes);
    return Value::of(std::move(left) + right);
  }

  Value compare(const Expression& e) {
    Value left = value(*e.parts[0]);
    for (std::size_t i = 0; i < e.operators.size(); ++i) {
      Value right = value(*e.parts[i + 1]);
      if (!holds(left, e.operators[i], right, budget_)) return Value::of(false);
      left = std::move(right);
    }
    return Value::of(true);
  }

  std::vector<Value::Object> scopes_;
  std::string output_;
  Budget budget_;
};

}  // namespace

std::string render(std::string_view source, const Value::Object& variables) {
  const std::vector<Statement> statements = parse(source);
  Evaluation evaluation(variables);
  evaluation.run(statements);
  return evaluation.output();
}

}  // namespace filigree::jinja
