// What becomes of a text before it is cut into words: Unicode's composed form, characters put in
// front, characters replaced. Steps in a row, as tokenizer.json lists them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace filigree {

struct NormalizerStep {
  enum class Kind {
    kNfc,      // canonical composition
    kPrepend,  // `to` in front of what is not empty
    kReplace,  // every `from` by `to`
  };
  Kind kind = Kind::kNfc;
  std::string from = {}, to = {};
};

// `text` must be well-formed UTF-8; so is the result. Throws Error for steps that make it many
// times as long.
std::string normalize(const std::vector<NormalizerStep>& steps, std::string_view text);

// Every `from`, which is not empty, by `to`.
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

}  // namespace filigree
