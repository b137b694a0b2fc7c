#include "figure/canvas.h"

#include <cairo.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numbers>
#include <string>
#include <utility>

#include "figure/png_chunks.h"
#include "figure/text_layout.h"
#include "filigree/error.h"

namespace filigree::figure {

namespace {

struct CanvasSurfaceDeleter {
  void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
};
using SurfacePtr = std::unique_ptr<cairo_surface_t, CanvasSurfaceDeleter>;

SurfacePtr make_surface(const Raster& raster) {
  SurfacePtr surface(cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(raster.width),
                                                static_cast<int>(raster.height)));
  require(cairo_surface_status(surface.get()) == CAIRO_STATUS_SUCCESS,
          "figure: no picture of {} x {} pixels: {}", raster.width, raster.height,
          cairo_status_to_string(cairo_surface_status(surface.get())));
  cairo_surface_flush(surface.get());
  unsigned char* data = cairo_image_surface_get_data(surface.get());
  const auto stride = static_cast<std::size_t>(cairo_image_surface_get_stride(surface.get()));
  for (std::size_t row = 0; row < raster.height; ++row)
    std::memcpy(data + row * stride, raster.pixels.data() + row * raster.width, raster.width * 4);
  cairo_surface_mark_dirty(surface.get());
  return surface;
}

void attach_png(cairo_surface_t* surface, std::string png) {
  auto* kept = new std::string(std::move(png));  // until the surface goes
  const auto release = [](void* text) { delete static_cast<std::string*>(text); };
  const cairo_status_t status = cairo_surface_set_mime_data(
      surface, CAIRO_MIME_TYPE_PNG, reinterpret_cast<const unsigned char*>(kept->data()),
      kept->size(), release, kept);
  if (status != CAIRO_STATUS_SUCCESS) release(kept);  // the picture is drawn without
}

// The upper left corner of the text before it is turned, relative to the anchor, and its size.
struct TextPlace {
  double left, top, baseline;  // baseline: of the first line
  Size size;
};

TextPlace place(PangoLayout* layout, const TextStyle& style) {
  PangoRectangle logical;
  pango_layout_get_extents(layout, nullptr, &logical);
  const int lines = pango_layout_get_line_count(layout);
  const double width = static_cast<double>(logical.width) / PANGO_SCALE;
  const double height = line_height(style.size) * lines;
  const double ascent = 1.069 * style.size;  // of Noto Sans; see line_height()
  double left = 0, baseline = 0;
  if (style.align == Align::kCenter) left = -width / 2;
  if (style.align == Align::kRight) left = -width;
  switch (style.vertical) {
    case VerticalAlign::kTop: baseline = ascent; break;
    case VerticalAlign::kMiddle:
      baseline = cap_height(style.size) / 2 - line_height(style.size) * (lines - 1) / 2;
      break;
    case VerticalAlign::kBaseline: break;
    case VerticalAlign::kBottom: baseline = ascent - height; break;
  }
  return {left, baseline - ascent, baseline, {width, height}};
}

}  // namespace

Canvas::Canvas(_cairo* context, double pixels_per_point, bool has_pixels)
    : context_(context), pixels_per_point_(pixels_per_point), has_pixels_(has_pixels) {
  cairo_set_line_join(context_, CAIRO_LINE_JOIN_ROUND);
}

void Canvas::apply(const Color& color) {
  cairo_set_source_rgba(context_, color.red, color.green, color.blue, color.alpha);
}

void Canvas::apply(const Stroke& stroke) {
  apply(stroke.color);
  cairo_set_line_width(context_, stroke.width);
  cairo_set_dash(context_, stroke.dashes.data(), static_cast<int>(stroke.dashes.size()), 0);
}

void Canvas::fill(const Rect& rect, const Color& color) {
  apply(color);
  cairo_rectangle(context_, rect.x, rect.y, rect.width, rect.height);
  cairo_fill(context_);
}

void Canvas::stroke(const Rect& rect, const Stroke& stroke) {
  apply(stroke);
  cairo_rectangle(context_, rect.x, rect.y, rect.width, rect.height);
  cairo_stroke(context_);
}

void Canvas::frame(const Rect& rect, const Stroke& stroke) {
  this->stroke(rect.inset(-stroke.width / 2), stroke);
}

void Canvas::rounded(const Rect& rect, double radius, const Color& fill, const Stroke& stroke) {
  constexpr double kQuarter = std::numbers::pi / 2;
  cairo_new_sub_path(context_);
  cairo_arc(context_, rect.right() - radius, rect.y + radius, radius, -kQuarter, 0);
  cairo_arc(context_, rect.right() - radius, rect.bottom() - radius, radius, 0, kQuarter);
  cairo_arc(context_, rect.x + radius, rect.bottom() - radius, radius, kQuarter, 2 * kQuarter);
  cairo_arc(context_, rect.x + radius, rect.y + radius, radius, 2 * kQuarter, 3 * kQuarter);
  cairo_close_path(context_);
  apply(fill);
  cairo_fill_preserve(context_);
  apply(stroke);
  cairo_stroke(context_);
}

void Canvas::line(Point from, Point to, const Stroke& stroke) {
  apply(stroke);
  cairo_move_to(context_, from.x, from.y);
  cairo_line_to(context_, to.x, to.y);
  cairo_stroke(context_);
}

void Canvas::polyline(std::span<const Point> points, const Stroke& stroke) {
  if (points.size() < 2) return;
  apply(stroke);
  cairo_move_to(context_, points[0].x, points[0].y);
  for (const Point& point : points.subspan(1)) cairo_line_to(context_, point.x, point.y);
  cairo_stroke(context_);
}

void Canvas::curve(const std::array<Point, 4>& points, const Stroke& stroke) {
  apply(stroke);
  cairo_move_to(context_, points[0].x, points[0].y);
  cairo_curve_to(context_, points[1].x, points[1].y, points[2].x, points[2].y, points[3].x,
                 points[3].y);
  cairo_stroke(context_);
}

void Canvas::polygon(std::span<const Point> points, const Color& fill) {
  if (points.size() < 3) return;
  apply(fill);
  cairo_move_to(context_, points[0].x, points[0].y);
  for (const Point& point : points.subspan(1)) cairo_line_to(context_, point.x, point.y);
  cairo_close_path(context_);
  cairo_fill(context_);
}

void Canvas::dots(std::span<const Point> centers, double radius, const Color& fill,
                  const Stroke& outline) {
  for (const Point& center : centers) {
    cairo_new_sub_path(context_);
    cairo_arc(context_, center.x, center.y, radius, 0, 2 * std::numbers::pi);
    apply(fill);
    if (outline.width > 0) {
      cairo_fill_preserve(context_);
      apply(outline);
      cairo_stroke(context_);
    } else {
      cairo_fill(context_);
    }
  }
}

void Canvas::text(Point anchor, std::string_view text, const TextStyle& style) {
  if (text.empty()) return;
  const ObjectPtr<PangoLayout> layout = make_layout(text, style);
  const TextPlace at = place(layout.get(), style);
  cairo_save(context_);
  cairo_translate(context_, anchor.x, anchor.y);
  cairo_rotate(context_, -style.angle * std::numbers::pi / 180);
  apply(style.color);
  // Line by line, at our own distances: the layout's would follow the tallest fallback font.
  double baseline = at.baseline;
  for (GSList* line = pango_layout_get_lines_readonly(layout.get()); line != nullptr;
       line = line->next) {
    auto* content = static_cast<PangoLayoutLine*>(line->data);
    PangoRectangle logical;
    pango_layout_line_get_extents(content, nullptr, &logical);
    const double slack = at.size.width - static_cast<double>(logical.width) / PANGO_SCALE;
    const double shift = style.align == Align::kLeft     ? 0
                         : style.align == Align::kCenter ? slack / 2
                                                         : slack;
    cairo_move_to(context_, at.left + shift, baseline);
    pango_cairo_show_layout_line(context_, content);
    baseline += line_height(style.size);
  }
  cairo_restore(context_);
}

Rect Canvas::snapped(const Rect& rect) const {
  if (!has_pixels_) return rect;
  const auto snap = [this](double value) {
    return std::round(value * pixels_per_point_) / pixels_per_point_;
  };
  const double x = snap(rect.x), y = snap(rect.y);
  // Sizes are rounded on their own: equal maps stay equal.
  const double pixel = 1 / pixels_per_point_;
  return {x, y, std::max(pixel, snap(rect.width)), std::max(pixel, snap(rect.height))};
}

void Canvas::heatmap(const Rect& rect, const LevelMap& map, ScaleKind kind,
                     const LevelColors& colors) {
  const Rect place = snapped(rect);
  // How many pixels stand for one side. A raster gets exactly its own. In a vector file as many as
  // the resolution can show; few cells are repeated, because some viewers smooth pictures, which
  // then touches only a small part of each cell.
  const auto pixels = [&](double length, std::size_t cells) -> std::size_t {
    const auto shown =
        static_cast<std::size_t>(std::max(1L, std::lround(length * pixels_per_point_)));
    if (has_pixels_ || shown <= cells) return shown;
    const std::size_t enough = std::min(shown, std::max<std::size_t>(96, shown / 2));
    return cells * ((enough + cells - 1) / cells);
  };
  const LevelMap shown =
      resample(map, kind, pixels(place.height, map.rows), pixels(place.width, map.columns));
  const SurfacePtr surface = make_surface(colorize(shown, colors));
  // Where the file can hold a picture in this form, it is much smaller.
  if (cairo_surface_supports_mime_type(cairo_get_target(context_), CAIRO_MIME_TYPE_PNG))
    attach_png(surface.get(), indexed_png(shown, colors));
  cairo_save(context_);
  cairo_translate(context_, place.x, place.y);
  cairo_scale(context_, place.width / static_cast<double>(shown.columns),
              place.height / static_cast<double>(shown.rows));
  cairo_set_source_surface(context_, surface.get(), 0, 0);
  cairo_pattern_set_filter(cairo_get_source(context_), CAIRO_FILTER_NEAREST);
  cairo_paint(context_);
  cairo_restore(context_);
}

Canvas::Clip::Clip(Canvas& canvas, const Rect& rect) : context_(canvas.context_) {
  cairo_save(context_);
  cairo_rectangle(context_, rect.x, rect.y, rect.width, rect.height);
  cairo_clip(context_);
}

Canvas::Clip::~Clip() { cairo_restore(context_); }

}  // namespace filigree::figure
