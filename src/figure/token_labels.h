// Tokens along the sides of a map.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "figure/canvas.h"
#include "filigree/figures.h"

namespace filigree::figure {

// The least size of a cell that a token can be written beside.
inline constexpr double kLeastLabelledCell = 4.6;

// Visible forms with the space that the longest needs; longer ones are cut at `most`.
class TokenLabels {
 public:
  // For cells of size `cell`, which also decides the size of the letters.
  TokenLabels(const std::vector<std::string>& tokens, double cell, const Theme& theme,
              double most = 42);

  // Room beside the map, the gap included.
  double room() const { return room_; }

  void draw_queries(Canvas& canvas, const Rect& map) const;  // left of it
  void draw_keys(Canvas& canvas, const Rect& map) const;     // below it, turned

 private:
  std::vector<std::string> labels_;
  TextStyle style_;
  double room_ = 0;
};

}  // namespace filigree::figure
