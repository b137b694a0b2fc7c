// A template as tokens: stretches of text, and the words and signs of expressions and statements.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace filigree::jinja {

struct Token {
  enum class Kind {
    kText,
    kOutputBegin,
    kOutputEnd,
    kBlockBegin,
    kBlockEnd,
    kName,
    kInteger,
    kString,
    kSign,
    kEnd
  };
  Kind kind = Kind::kEnd;
  std::string text = {};  // what it is; of strings without quotes and escapes
  std::int64_t integer = 0;
  std::size_t line = 1;
};

std::vector<Token> tokens_of(std::string_view source);

}  // namespace filigree::jinja
