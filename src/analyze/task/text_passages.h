// What the tasks of a text share: one passage after the other, whether a changed one still stands
// token by token beside the clean one, and where the two are asked.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "filigree/tasks.h"

namespace filigree {

// Each site once, in random order.
template <typename Site>
DrawPair draw_each(std::vector<Site> sites, std::function<TaskPair(const Site&, Random&)> make) {
  const auto left = std::make_shared<std::vector<Site>>(std::move(sites));
  return [left, make = std::move(make)](Random& random) -> std::optional<TaskPair> {
    if (left->empty()) return std::nullopt;
    std::swap((*left)[static_cast<std::size_t>(random.below(left->size()))], left->back());
    const Site site = left->back();
    left->pop_back();
    return make(site, random);
  };
}

// Whether the two have equally many tokens and agree in all but at most `most` tokens in a row.
inline bool stand_side_by_side(const Tokenizer& tokenizer, const std::string& clean,
                               const std::string& corrupt, std::size_t most) {
  const std::vector<TokenId> a = tokenizer.encode(clean), b = tokenizer.encode(corrupt);
  if (a.size() != b.size()) return false;
  const auto front = std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin();
  const auto back = std::mismatch(a.rbegin(), a.rend(), b.rbegin()).first - a.rbegin();
  return static_cast<std::size_t>(front + back) + most >= a.size();
}

// Where the answer and the wrong one begin with the same tokens, as all words do for a tokenizer to
// which a space is a token, the prompts go on to where they part.
inline TaskPair asked_where_they_part(TaskPair pair, const Tokenizer& tokenizer) {
  std::string &answer = pair.clean.answer, &wrong = pair.clean.wrong[0];
  const std::vector<TokenId> a = tokenizer.encode(answer), b = tokenizer.encode(wrong);
  std::size_t same = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()) && a[i] == b[i]; ++i)
    same += tokenizer.token_bytes(a[i]).size();
  if (same >= std::min(answer.size(), wrong.size())) return pair;
  const auto is_inside_character = [](char c) { return (static_cast<unsigned>(c) & 0xC0) == 0x80; };
  while (is_inside_character(answer[same]) || is_inside_character(wrong[same])) --same;
  pair.clean.prompt += answer.substr(0, same);
  pair.corrupt += answer.substr(0, same);
  answer.erase(0, same);
  wrong.erase(0, same);
  return pair;
}

}  // namespace filigree
