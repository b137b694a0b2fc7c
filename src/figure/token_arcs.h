// Sentences with arcs between their tokens: what each takes from earlier ones, one model's above
// the line and, of the same sentence, another's below. Long sentences go on in a new line of the
// page only as a whole: a figure is as wide as its longest sentence.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "figure/figure.h"
#include "figure/theme.h"

namespace filigree::figure {

struct TokenArc {
  std::size_t query = 0, key = 0;  // places in the tokens, the key not after the query
  double weight = 0;               // 0 to 1
};

struct ArcSide {
  std::string name = {};  // of a model
  std::size_t color = 0;  // category of the theme
  std::vector<TokenArc> arcs = {};
};

struct ArcSentence {
  std::vector<std::string> tokens = {};
  ArcSide above = {};
  std::optional<ArcSide> below = {};
  // The token that the arcs are about: bold, and arcs that only pass it on are dashed.
  std::optional<std::size_t> chosen = {};
  std::optional<std::size_t> fresh = {};  // tokens from here on are new: bold
};

struct TokenArcs {
  std::string title = {};
  std::vector<ArcSentence> sentences = {};  // one below the other
  std::string caption = {};
};

// Of a side at most so many arcs are drawn, the strongest.
inline constexpr std::size_t kMostArcs = 2000;

// Throws Error, naming the sentence and the arc, for places that there are not, keys after their
// query and weights that are not between 0 and 1.
Figure token_arcs(const TokenArcs& input, const Theme& theme);

}  // namespace filigree::figure
