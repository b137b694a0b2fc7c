#include <algorithm>
#include <array>

#include "filigree/error.h"
#include "filigree/names.h"
#include "text/jinja/jinja.h"
#include "text/jinja/lexer.h"
#include "text/jinja/syntax.h"

namespace filigree::jinja {
namespace {

using Kind = Expression::Kind;
using Pointer = Expression::Pointer;

Pointer node(Kind kind, std::string name = {}) {
  auto made = std::make_unique<Expression>();
  made->kind = kind;
  made->name = std::move(name);
  return made;
}

template <typename... Parts>
Pointer node_of(Kind kind, std::string name, Parts... parts) {
  Pointer made = node(kind, std::move(name));
  (made->parts.push_back(std::move(parts)), ...);
  return made;
}

class Parser {
 public:
  explicit Parser(std::string_view source) : tokens_(tokens_of(source)) {}

  std::vector<Statement> run() {
    std::vector<Statement> statements = body({});
    if (now().kind != Token::Kind::kEnd) unexpected();
    return statements;
  }

 private:
  // Counts how deep statements and expressions nest.
  class Level {
   public:
    explicit Level(Parser& parser) : parser_(parser) {
      require(++parser_.depth_ <= kMaxDepth, "chat template: line {}: nested more than {} deep",
              parser_.now().line, kMaxDepth);
    }
    ~Level() { --parser_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Parser& parser_;
  };

  const Token& now() const { return tokens_[at_]; }
  const Token& next() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token take() { return at_ + 1 < tokens_.size() ? tokens_[at_++] : tokens_[at_]; }

  bool is(std::string_view sign) const {
    return now().kind == Token::Kind::kSign && now().text == sign;
  }
  bool is_word(std::string_view word) const {
    return now().kind == Token::Kind::kName && now().text == word;
  }
  bool accept(std::string_view sign) {
    if (!is(sign)) return false;
    take();
    return true;
  }
  bool accept_word(std::string_view word) {
    if (!is_word(word)) return false;
    take();
    return true;
  }
  void expect(std::string_view sign) {
    if (!accept(sign)) unexpected(fmt::format("'{}'", sign));
  }
  void expect(Token::Kind kind, const char* what) {
    if (now().kind != kind) unexpected(what);
    take();
  }
  std::string expect_name() {
    if (now().kind != Token::Kind::kName) unexpected("a name");
    return take().text;
  }
  [[noreturn]] void unexpected(const std::string& wanted = "") const {
    fail("chat template: line {}: '{}' is not expected here{}", now().line, printable(now().text),
         wanted.empty() ? "" : "; " + wanted + " is");
  }

  // Up to a statement of one of these names, which is not taken.
  std::vector<Statement> body(const std::vector<std::string_view>& ends) {
    const Level level(*this);
    std::vector<Statement> statements;
    while (now().kind != Token::Kind::kEnd) {
      if (now().kind == Token::Kind::kText) {
        Statement& text = statements.emplace_back();
        text.text = take().text;
      } else if (now().kind == Token::Kind::kOutputBegin) {
        take();
        Statement& output = statements.emplace_back();
        output.kind = Statement::Kind::kOutput;
        output.expression = expression();
        expect(Token::Kind::kOutputEnd, "'}}'");
      } else if (now().kind != Token::Kind::kBlockBegin) {
        unexpected();
      } else if (std::ranges::find(ends, next().text) != ends.end()) {
        return statements;
      } else {
        add_statement(statements);
      }
    }
    return statements;
  }

  void add_statement(std::vector<Statement>& statements) {
    take();
    const std::string name = expect_name();
    if (name == "if") {
      statements.push_back(if_statement());
    } else if (name == "for") {
      statements.push_back(for_statement());
    } else if (name == "set") {
      statements.push_back(set_statement());
    } else if (name == "generation") {  // marks what the model wrote, and changes nothing
      expect(Token::Kind::kBlockEnd, "'%}'");
      for (Statement& each : body({"endgeneration"})) statements.push_back(std::move(each));
      end("endgeneration");
    } else {
      fail(
          "chat template: line {}: the statement '{}' is not supported; if, for, set and "
          "generation "
          "are",
          now().line, printable(name));
    }
  }

  void end(std::string_view name) {
    expect(Token::Kind::kBlockBegin, "'{%'");
    if (!accept_word(name)) unexpected(std::string(name));
    expect(Token::Kind::kBlockEnd, "'%}'");
  }

  Statement if_statement() {
    Statement statement{.kind = Statement::Kind::kIf};
    statement.expression = expression();
    expect(Token::Kind::kBlockEnd, "'%}'");
    statement.body = body({"elif", "else", "endif"});
    if (now().kind == Token::Kind::kBlockBegin && next().text == "elif") {
      const Level level(*this);
      take();
      take();
      statement.otherwise.push_back(if_statement());
      return statement;  // which took the end
    }
    if (now().kind == Token::Kind::kBlockBegin && next().text == "else") {
      end("else");
      statement.otherwise = body({"endif"});
    }
    end("endif");
    return statement;
  }

  Statement for_statement() {
    Statement statement{.kind = Statement::Kind::kFor};
    statement.text = expect_name();
    if (is(",")) unexpected("'in' (names for pairs are not supported)");
    if (!accept_word("in")) unexpected("'in'");
    statement.expression = disjunction();
    if (accept_word("if")) statement.condition = disjunction();
    if (is_word("recursive")) unexpected();
    expect(Token::Kind::kBlockEnd, "'%}'");
    statement.body = body({"else", "endfor"});
    if (now().kind == Token::Kind::kBlockBegin && next().text == "else") {
      end("else");
      statement.otherwise = body({"endfor"});
    }
    end("endfor");
    return statement;
  }

  Statement set_statement() {
    Statement statement{.kind = Statement::Kind::kSet};
    statement.text = expect_name();
    if (accept(".")) statement.attribute = expect_name();
    expect("=");
    statement.expression = expression();
    expect(Token::Kind::kBlockEnd, "'%}'");
    return statement;
  }

  Pointer expression() {
    const Level level(*this);
    Pointer value = disjunction();
    if (!accept_word("if")) return value;
    Pointer condition = disjunction();
    Pointer other = accept_word("else") ? expression() : nullptr;
    return node_of(Kind::kChoice, "", std::move(value), std::move(condition), std::move(other));
  }

  // A chain of operators of one kind is as deep as it is long.
  template <typename Operand, typename Operator>
  Pointer chain(Operand operand, Operator taken) {
    Pointer left = operand();
    for (int length = 0;; ++length) {
      const std::string sign = taken();
      if (sign.empty()) return left;
      require(length < kMaxDepth, "chat template: line {}: more than {} operators in a row",
              now().line, kMaxDepth);
      Pointer right = operand();
      left = node_of(Kind::kBinary, sign, std::move(left), std::move(right));
    }
  }

  Pointer disjunction() {
    const Level level(*this);
    return chain([&] { return conjunction(); },
                 [&] { return std::string(accept_word("or") ? "or" : ""); });
  }

  Pointer conjunction() {
    return chain([&] { return negation(); },
                 [&] { return std::string(accept_word("and") ? "and" : ""); });
  }

  Pointer negation() {
    if (!is_word("not")) return comparison();
    const Level level(*this);
    take();
    return node_of(Kind::kNot, "", negation());
  }

  Pointer comparison() {
    Pointer first = sum();
    Pointer compared;
    while (true) {
      std::string sign;
      if (now().kind == Token::Kind::kSign) {
        for (const std::string_view known : {"==", "!=", "<", ">", "<=", ">="})
          if (now().text == known) sign = known;
        if (!sign.empty()) take();
      } else if (accept_word("in")) {
        sign = "in";
      } else if (is_word("not") && next().text == "in") {
        take();
        take();
        sign = "not in";
      }
      if (sign.empty()) return compared ? std::move(compared) : std::move(first);
      if (!compared) compared = node_of(Kind::kCompare, "", std::move(first));
      require(compared->operators.size() < std::size_t{kMaxDepth},
              "chat template: line {}: more than {} comparisons in a row", now().line, kMaxDepth);
      compared->operators.push_back(sign);
      compared->parts.push_back(sum());
    }
  }

  std::string taken_sign(std::initializer_list<std::string_view> signs) {
    for (const std::string_view sign : signs)
      if (accept(sign)) return std::string(sign);
    return "";
  }

  Pointer sum() {
    return chain([&] { return joined(); }, [&] { return taken_sign({"+", "-"}); });
  }
  Pointer joined() {
    return chain([&] { return product(); }, [&] { return taken_sign({"~"}); });
  }
  Pointer product() {
    return chain([&] { return unary(); }, [&] { return taken_sign({"*", "//", "%"}); });
  }

  Pointer unary() {
    if (is("-")) {
      const Level level(*this);
      take();
      return node_of(Kind::kNegative, "", unary());
    }
    return filtered(postfixed(primary()));
  }

  Pointer filtered(Pointer value) {
    for (int length = 0;; ++length) {
      require(length < kMaxDepth, "chat template: line {}: more than {} filters in a row",
              now().line, kMaxDepth);
      if (accept("|")) {
        value = node_of(Kind::kFilter, expect_name(), std::move(value));
        if (accept("(")) arguments(*value);
      } else if (accept_word("is")) {
        const bool negated = accept_word("not");
        value = node_of(Kind::kTest, expect_name(), std::move(value));
        if (accept("(")) arguments(*value);
        if (negated) value = node_of(Kind::kNot, "", std::move(value));
      } else {
        return value;
      }
    }
  }

  Pointer postfixed(Pointer value) {
    for (int length = 0;; ++length) {
      require(length < kMaxDepth, "chat template: line {}: more than {} accesses in a row",
              now().line, kMaxDepth);
      if (accept(".")) {
        value = node_of(Kind::kAttribute, expect_name(), std::move(value));
      } else if (accept("[")) {
        value = item(std::move(value));
      } else if (accept("(")) {
        value = node_of(Kind::kCall, "", std::move(value));
        arguments(*value);
      } else {
        return value;
      }
    }
  }

  Pointer item(Pointer value) {
    std::array<Pointer, 3> bounds;
    std::size_t bound = 0;
    bool slice = false;
    while (!is("]")) {
      if (accept(":")) {
        slice = true;
        if (++bound == bounds.size()) unexpected("']'");
      } else {
        if (bounds[bound]) unexpected("']'");
        bounds[bound] = expression();
      }
    }
    expect("]");
    if (slice)
      return node_of(Kind::kSlice, "", std::move(value), std::move(bounds[0]), std::move(bounds[1]),
                     std::move(bounds[2]));
    if (!bounds[0]) unexpected("a key");
    return node_of(Kind::kItem, "", std::move(value), std::move(bounds[0]));
  }

  void arguments(Expression& call) {
    while (!accept(")")) {
      if (now().kind == Token::Kind::kName && next().kind == Token::Kind::kSign &&
          next().text == "=") {
        std::string name = take().text;
        take();
        call.named.emplace_back(std::move(name), expression());
      } else {
        call.parts.push_back(expression());
      }
      if (!is(")")) expect(",");
    }
  }

  Pointer primary() {
    const Token token = take();
    switch (token.kind) {
      case Token::Kind::kString: {
        Pointer text = node(Kind::kLiteral, "text");
        text->text = token.text;
        while (now().kind == Token::Kind::kString) text->text += take().text;
        return text;
      }
      case Token::Kind::kInteger: {
        Pointer integer = node(Kind::kLiteral, "integer");
        integer->integer = token.integer;
        return integer;
      }
      case Token::Kind::kName:
        for (const std::string_view word : {"true", "false", "none", "True", "False", "None"})
          if (token.text == word) return node(Kind::kLiteral, token.text);
        return node(Kind::kName, token.text);
      case Token::Kind::kSign: break;
      default: --at_; unexpected("a value");
    }
    if (token.text == "(") {
      Pointer value = expression();
      expect(")");
      return value;
    }
    if (token.text == "[") {
      Pointer list = node(Kind::kList);
      while (!accept("]")) {
        list->parts.push_back(expression());
        if (!is("]")) expect(",");
      }
      return list;
    }
    if (token.text == "{") {
      Pointer object = node(Kind::kObject);
      while (!accept("}")) {
        object->parts.push_back(expression());
        expect(":");
        object->parts.push_back(expression());
        if (!is("}")) expect(",");
      }
      return object;
    }
    --at_;
    unexpected("a value");
  }

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::vector<Statement> parse(std::string_view source) { return Parser(source).run(); }

}  // namespace filigree::jinja
