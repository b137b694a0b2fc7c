// What the tasks of a text share: one passage after the other, and whether a changed one still
// stands token by token beside the clean one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "filigree/analyze/task/tasks.h"

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

}  // namespace filigree
