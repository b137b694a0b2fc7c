// Every chosen head of one or more models on one page: rounded panels of small square maps, in the
// order given.
//
// One fixed colour scale for all maps; what lies above the diagonal is left empty. Exact zero is
// the empty colour, the smallest other value is visibly tinted (heatmap.h). Maps are taken as
// levels, so that a caller who computes head by head never holds more than one map of floats.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "figure/figure.h"
#include "figure/heatmap.h"
#include "figure/theme.h"

namespace filigree::figure {

struct GridCell {
  std::size_t query = 0, key = 0;
};

struct GridHead {
  int layer = 0, head = 0;
  std::size_t tokens = 0;
  LevelMap map = {};
  // Places in AttentionGrid::roles; two for a hybrid. None: no colour.
  std::vector<std::size_t> roles = {};
  // Cells that are framed, and what is said of them below the map: "END \u2190 IO".
  std::vector<GridCell> marks = {};
  std::string note = {};
};

// The head's map from its weights, tokens x tokens, query by query. Errors name the head.
GridHead grid_head(int layer, int head, std::span<const float> weights, std::size_t tokens,
                   const ColorScale& scale = {});

struct GridPanel {
  std::string title = {};
  std::vector<GridHead> heads = {};
};

struct AttentionGrid {
  std::string title = {};
  std::vector<GridPanel> panels = {};  // one below the other
  ColorScale scale = {};               // the one that the maps were made with
  std::string scale_label = "attention weight";
  std::vector<std::string> roles =
      {};  // in the order of the colours; those that occur are in the legend
  std::vector<std::string> tokens = {};  // shown beside maps that are large enough
  std::string prompt = {};               // both underneath, wrapped
  std::string metric = {};
  std::size_t columns = 0;  // 0: as large maps as one page allows; the number of heads a layer
                            // makes each row one layer
  double width = 0;         // of the panels, in points; 0: that of a page
};

// Throws Error for a panel without heads, a role that is not listed, maps that do not fit the
// tokens, or marks outside their map.
Figure attention_grid(const AttentionGrid& input, const Theme& theme);

// The columns that `columns` = 0 chooses for panels of as many heads.
std::size_t automatic_columns(std::span<const std::size_t> heads_per_panel, double width = 0);

}  // namespace filigree::figure
