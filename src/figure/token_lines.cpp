#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "filigree/figures.h"

namespace filigree::figure {

namespace {

constexpr std::size_t kHeadsNamed = 3;  // of one line

// Two decimals, "0.93", less the zeros at their end.
std::string attention_text(double weight) {
  std::string text = fmt::format("{:.2f}", weight);
  text.resize(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace

std::vector<TokenLine> token_lines(const std::vector<TokenEdge>& edges) {
  using Place = std::tuple<std::int64_t, std::size_t, std::size_t>;
  std::map<Place, std::vector<const TokenEdge*>> places;
  for (const TokenEdge& edge : edges)
    places[{edge.head.layer, edge.query, edge.key}].push_back(&edge);
  std::vector<TokenLine> lines;
  for (auto& [place, members] : places) {
    std::stable_sort(members.begin(), members.end(), [](const TokenEdge* a, const TokenEdge* b) {
      return std::abs(a->score) > std::abs(b->score);
    });
    TokenLine line = {static_cast<std::size_t>(std::get<0>(place)), std::get<1>(place),
                      std::get<2>(place)};
    for (const TokenEdge* edge : members) {
      line.heads.push_back(edge->head.head);
      line.score += edge->score;
      line.weight += std::abs(edge->score);
      if (edge->attention) line.attention.push_back(*edge->attention);
    }
    if (line.attention.size() < line.heads.size()) line.attention.clear();
    lines.push_back(std::move(line));
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const TokenLine& a, const TokenLine& b) { return a.weight > b.weight; });
  return lines;
}

std::string name_of(const TokenLine& line) {
  std::string text = layer_name(static_cast<std::int64_t>(line.layer));
  if (line.heads.size() > kHeadsNamed) return text + fmt::format(" \u00D7{}", line.heads.size());
  for (std::size_t i = 0; i < line.heads.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "H" : ",", line.heads[i]);
  return text;
}

std::string name_with_attention(const TokenLine& line) {
  std::string text = name_of(line);
  if (line.heads.size() > kHeadsNamed) return text;
  for (std::size_t i = 0; i < line.attention.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? " " : ",", attention_text(line.attention[i]));
  return text;
}

}  // namespace filigree::figure
