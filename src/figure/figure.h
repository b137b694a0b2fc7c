// A figure: a page of a size and what is drawn on it. Figures are values, made by the functions of
// attention_grid.h, head_strip.h and so on, which check their input and decide the layout; drawing
// one cannot fail for reasons of the data, and may be done any number of times.
#pragma once

#include <functional>
#include <string>

#include "figure/canvas.h"
#include "figure/geometry.h"

namespace filigree::figure {

struct Figure {
  std::string title;  // for the document's properties
  Size size;          // points
  Color background;
  std::function<void(Canvas&)> draw;
};

}  // namespace filigree::figure
