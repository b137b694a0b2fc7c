// How something gets from one token to another: for each model the heads that carry it, as small
// maps with the cell marked, the sources that modulate those heads, the sentence with its tokens
// numbered, and what is predicted. What is many looks like many.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/component.h"
#include "figure/figure.h"
#include "figure/theme.h"

namespace filigree::figure {

struct CarryingMap {
  HeadId head = {};
  std::vector<float> weights = {};  // [tokens, tokens], rows are queries
  double share = 0;                 // of all that is carried
};

struct ModulatingToken {
  std::size_t position = 0;
  std::int64_t first_layer = 0, last_layer = 0;
  double share = 0;
};

struct CarriedPanel {
  std::string title = {};              // "GPT-2: 43 heads carry 80 %"
  std::vector<CarryingMap> maps = {};  // the strongest first
  std::vector<ModulatingToken> modulated_by = {};
  std::string answer = {};  // a token
  std::string note = {};    // behind it: "97 %"
};

struct CarriedPairFigure {
  std::string title = {};
  std::vector<std::string> tokens = {};
  std::size_t key = 0, query = 0;
  std::vector<CarriedPanel> panels = {};  // beside each other
  std::string caption = {};
};

// Throws Error, naming the panel, for maps that do not fit the tokens and positions that there are
// not.
Figure carried_pair(const CarriedPairFigure& input, const Theme& theme);

}  // namespace filigree::figure
