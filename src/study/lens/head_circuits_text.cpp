#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/table.h"
#include "filigree/lens_study.h"
#include "filigree/names.h"

namespace filigree::study {
namespace {

// Heads by one of their scores, the highest first.
std::vector<std::size_t> ordered_heads(const HeadCircuits& found,
                                       double HeadCircuitScores::*score) {
  std::vector<std::size_t> order(found.scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return found.scores[a].*score > found.scores[b].*score;
  });
  return order;
}

std::string eigenvalue_table(const HeadCircuits& found) {
  const auto copying = ordered_heads(found, &HeadCircuitScores::copying);
  const auto matching = ordered_heads(found, &HeadCircuitScores::matching);
  Table table({{"copies"},
               {"OV score", Align::kRight},
               {"   looks for itself"},
               {"QK score", Align::kRight}});
  for (std::size_t i = 0; i < std::min(copying.size(), found.request.top); ++i)
    table.add({head_name(found.listed[copying[i]]),
               fmt::format("{:+.3f}", found.scores[copying[i]].copying),
               "   " + head_name(found.listed[matching[i]]),
               fmt::format("{:+.3f}", found.scores[matching[i]].matching)});
  return table.text(2);
}

std::string composition_table(const HeadCircuits& found) {
  const std::vector<std::vector<ComposedPair>> lists = {found.strongest(Composition::kQuery),
                                                        found.strongest(Composition::kKey),
                                                        found.strongest(Composition::kValue)};
  Table table({{"Q-composition"},
               {"score", Align::kRight},
               {"   K-composition"},
               {"score", Align::kRight},
               {"   V-composition"},
               {"score", Align::kRight}});
  for (std::size_t i = 0; i < lists[0].size(); ++i) {
    std::vector<std::string> cells;
    for (const std::vector<ComposedPair>& pairs : lists) {
      cells.push_back(fmt::format("{}{} -> {}", cells.empty() ? "" : "   ",
                                  head_name(pairs[i].earlier), head_name(pairs[i].later)));
      cells.push_back(fmt::format("{:.3f}", pairs[i].score));
    }
    table.add(std::move(cells));
  }
  return table.text(2);
}

std::string token_pairs_text(const HeadCircuits& found, const PairsOfHead& pairs) {
  Table table({{"reads"},
               {"raises"},
               {"by", Align::kRight},
               {"   query"},
               {"looks for"},
               {"score", Align::kRight}});
  const auto quoted = [&](TokenId id) { return "'" + found.shown[id] + "'"; };
  for (std::size_t i = 0; i < std::max(pairs.ov.size(), pairs.qk.size()); ++i) {
    std::vector<std::string> cells(6);
    if (i < pairs.ov.size())
      cells[0] = quoted(pairs.ov[i].from), cells[1] = quoted(pairs.ov[i].to),
      cells[2] = fmt::format("{:.2f}", pairs.ov[i].score);
    if (i < pairs.qk.size())
      cells[3] = "   " + quoted(pairs.qk[i].from), cells[4] = quoted(pairs.qk[i].to),
      cells[5] = fmt::format("{:.2f}", pairs.qk[i].score);
    table.add(std::move(cells));
  }
  return fmt::format("\n{}\n", head_name(pairs.head)) + table.text(2);
}

}  // namespace

std::string text_of(const HeadCircuits& found) {
  std::string text;
  if (found.alive)
    text += fmt::format("{} heads ever open on {}: only these are listed\n",
                        count_text(found.alive->heads), found.alive->source);
  text += fmt::format("shares of positive eigenvalues, from -1 to 1, of {}{}\n{}",
                      description_of(found.request.input),
                      found.text.empty() ? "" : " of " + found.text, eigenvalue_table(found));
  if (!found.strongest(Composition::kQuery).empty())
    text += fmt::format("\nhow much later heads read of earlier ones; random matrices: {:.3f}{}\n",
                        found.composition.random,
                        found.request.less_random ? ", taken off the scores" : "") +
            composition_table(found);
  for (const PairsOfHead& pairs : found.pairs) text += token_pairs_text(found, pairs);
  return text;
}

}  // namespace filigree::study
