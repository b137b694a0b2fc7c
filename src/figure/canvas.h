// The one drawing layer: lines, shapes, text and pictures on a page, in points. It knows nothing of
// file formats; filigree/figures.h makes it over a surface of Cairo.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "figure/text.h"
#include "filigree/figures.h"

struct _cairo;  // NOLINT(bugprone-reserved-identifier): the name that the library gave it

namespace filigree::figure {

struct Stroke {
  Color color = {};
  double width = 0.5;
  std::vector<double> dashes = {};  // lengths on and off; none: solid
};

class Canvas {
 public:
  // Draws with `context`, which stays the caller's. `pixels_per_point` is the resolution that
  // pictures are prepared for; `has_pixels` says that it is the resolution of a raster behind it,
  // with whose pixels edges should coincide.
  Canvas(_cairo* context, double pixels_per_point, bool has_pixels);

  void fill(const Rect& rect, const Color& color);
  void stroke(const Rect& rect, const Stroke& stroke);
  // Around `rect`, covering nothing of it.
  void frame(const Rect& rect, const Stroke& stroke);
  void rounded(const Rect& rect, double radius, const Color& fill, const Stroke& stroke);
  void line(Point from, Point to, const Stroke& stroke);
  void polyline(std::span<const Point> points, const Stroke& stroke);
  // A cubic Bezier curve.
  void curve(const std::array<Point, 4>& points, const Stroke& stroke);
  void polygon(std::span<const Point> points, const Color& fill);
  // Circles of one radius, each filled and, with a width above 0, outlined.
  void dots(std::span<const Point> centers, double radius, const Color& fill,
            const Stroke& outline = {.width = 0});

  // `anchor` is the point that the alignments of `style` speak of.
  void text(Point anchor, std::string_view text, const TextStyle& style);

  // A map that fills `rect`, with sharp cells.
  void heatmap(const Rect& rect, const LevelMap& map, ScaleKind kind, const LevelColors& colors);

  // `rect` moved to whole pixels where there are any, so that the frame of a heat map and its cells
  // meet.
  Rect snapped(const Rect& rect) const;

  // While it lives, nothing outside `rect` is drawn.
  class Clip {
   public:
    Clip(Canvas& canvas, const Rect& rect);
    ~Clip();
    Clip(const Clip&) = delete;
    Clip& operator=(const Clip&) = delete;

   private:
    _cairo* context_;
  };

 private:
  void apply(const Stroke& stroke);
  void apply(const Color& color);

  _cairo* context_;
  double pixels_per_point_;
  bool has_pixels_;
};

}  // namespace filigree::figure
