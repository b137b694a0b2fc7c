// Points, sizes and rectangles of a page. The unit is the typographic point (1/72 inch), x grows to
// the right and y downwards.
#pragma once

#include <algorithm>

namespace filigree::figure {

struct Point {
  double x = 0, y = 0;
};

struct Size {
  double width = 0, height = 0;
};

struct Rect {
  double x = 0, y = 0, width = 0, height = 0;

  double right() const { return x + width; }
  double bottom() const { return y + height; }
  Point center() const { return {x + width / 2, y + height / 2}; }

  // Smaller by `by` on every side; larger for a negative value.
  Rect inset(double by) const { return {x + by, y + by, width - 2 * by, height - 2 * by}; }

  bool overlaps(const Rect& other) const {
    return x < other.right() && other.x < right() && y < other.bottom() && other.y < bottom();
  }
  bool contains(const Rect& other) const {
    return x <= other.x && y <= other.y && other.right() <= right() && other.bottom() <= bottom();
  }
  bool contains(Point point) const {
    return x <= point.x && point.x <= right() && y <= point.y && point.y <= bottom();
  }
};

}  // namespace filigree::figure
