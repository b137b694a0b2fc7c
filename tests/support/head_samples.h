// A head's page over made-up data, for the gallery and the stored pictures.
#pragma once

#include <string>
#include <vector>

#include "filigree/figures.h"

namespace filigree::figure::samples {

inline HeadPage head_sample(std::size_t maps) {
  HeadPage page;
  page.title = "L6H11 of sparse";
  page.facts = {
      "L6H11 of sparse: duplicate-name (duplicate-name 0.98 at the end of 48 ioi "
      "sentences). OV score −0.99: suppresses what it reads."};
  page.tokens = {"When",   " Mary", " and",  " John", " went", " to",    " the",
                 " store", ",",     " John", " gave", " a",    " drink", " to"};
  const std::size_t T = page.tokens.size();
  for (std::size_t m = 0; m < maps; ++m) {
    std::vector<float> map(T * T, 0.0f);
    map[13 * T + 9] = m == 0 ? 1.0f : 0.8f;
    map[3 * T + 3] = 0.9f;
    for (std::size_t i = 0; m == 1 && i < T; ++i)
      for (std::size_t j = 0; j <= i; ++j) map[i * T + j] += 0.2f / static_cast<float>(i + 1);
    page.maps.push_back({m == 0 ? "L6H11 of sparse" : "L6H11 of dense", map, 1 - m});
  }
  page.bars_heading = "Tasks lose without it";
  const std::vector<std::string> names = {"ioi", "greater-than", "pronoun", "induction",
                                          "addition"};
  const double values[] = {0.226, -0.012, 0.004, 0.031, 0};
  for (std::size_t t = 0; t < names.size(); ++t) {
    HeadPageBar bar = {names[t], {}, {}, names[t] == "addition"};
    for (std::size_t m = 0; m < maps; ++m) {
      bar.values.push_back(values[t] * (m == 0 ? 1.0 : 0.7));
      bar.errors.push_back(t == 4 ? 0.0 : 0.01);
    }
    page.bars.push_back(bar);
  }
  page.lists = {{"Strongest edges: query ← key",
                 {"' to' ← ' John'", "' to' ← ' Katherine'", "' a' ← ' shed'"},
                 {"1.00, 12 ×", "0.98, 7 ×", "0.41, 3 ×"}},
                {"The last token of tasks reads",
                 {"ioi", "greater-than"},
                 {"' to' ← ' John' 1.00", "' 17' ← ' 17' 0.98"}},
                {"Raises directly", {"' Mary'", "' Ann'"}, {"+0.61", "+0.40"}},
                {"Lowers directly", {"' John'", "' Jon'"}, {"−2.31", "−0.52"}},
                {"OV: own logit of what it reads",
                 {"' John'", "' shed'"},
                 {"−1.95, rank 8,192", "−0.40, rank 7,950"}},
                {"Reads heads as its",
                 {"Q", "K", "V"},
                 {"L3H9 0.21, L2H3 0.17", "L5H4 0.15", "L0H10 0.19, L1H6 0.12"}}};
  page.caption =
      "Made-up numbers. Maps: the prompt of the strongest edge. Bars: share of the "
      "metric's difference that is lost, with standard errors.";
  return page;
}

}  // namespace filigree::figure::samples
