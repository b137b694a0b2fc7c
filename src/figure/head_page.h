// One head on one page: its map on a prompt (beside its twin's), its strongest edges, what tasks
// lose without it, and lists of words about it.
#pragma once

#include <string>
#include <vector>

#include "figure/figure.h"
#include "figure/heatmap.h"
#include "figure/theme.h"

namespace filigree::figure {

struct HeadPageMap {
  std::string name = {};            // "L6H11 of sparse"
  std::vector<float> weights = {};  // tokens x tokens, query by query
  std::size_t color = 0;            // of the model, in the theme's categories
};

// One row of bars, a value with its error for each map's model; "" in notes where there is nothing
// to say.
struct HeadPageBar {
  std::string name = {};
  std::vector<double> values = {}, errors = {};
  bool muted = false;  // a task that the model cannot do
};

// A heading and rows of two columns.
struct HeadPageList {
  std::string heading = {};
  std::vector<std::string> left = {}, right = {};
};

struct HeadPage {
  std::string title = {};
  std::vector<std::string> facts = {};  // sentences, a line each where there is room
  std::vector<std::string> tokens = {};
  std::vector<HeadPageMap> maps = {};  // one or two
  std::string bars_heading = {};
  std::vector<HeadPageBar> bars = {};
  std::vector<HeadPageList> lists = {};  // the first `beside` beside the maps, the others beside
  std::size_t beside = 1;                // the bars
  std::string caption = {};
};

// Throws Error for maps that do not fit the tokens and bars that do not fit the maps.
Figure head_page(const HeadPage& input, const Theme& theme);

}  // namespace filigree::figure
