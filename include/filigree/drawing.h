// What figures are drawn with: colours, axes, themes, heat maps; and figures as files.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "filigree/names.h"
#include "filigree/palette.h"

namespace filigree::figure {

// -------------------------------------------------------------------------------------------------
// Colours and the ways from a number to a colour.

struct Color {
  double red = 0, green = 0, blue = 0, alpha = 1;  // each in [0, 1], sRGB

  bool operator==(const Color&) const = default;

  // 0xRRGGBB.
  static constexpr Color hex(std::uint32_t rgb, double opacity = 1) {
    return {static_cast<double>((rgb >> 16) & 255) / 255,
            static_cast<double>((rgb >> 8) & 255) / 255, static_cast<double>(rgb & 255) / 255,
            opacity};
  }
  Color with_alpha(double opacity) const { return {red, green, blue, opacity}; }
  // 0xRRGGBB; the opacity is left out.
  std::uint32_t rgb() const;
};

// `part` of the way from `a` to `b`, in sRGB.
Color mix(const Color& a, const Color& b, double part);

// Relative luminance (WCAG): 0 black, 1 white.
double luminance(const Color& color);

// Whichever of the two stands out more against `background`.
Color more_contrast(const Color& a, const Color& b, const Color& background);

// A colour for each of 256 levels, as heat maps hold them.
using LevelColors = std::array<Color, 256>;

// A piecewise linear path through colours at equal distances.
class ColorRamp {
 public:
  explicit ColorRamp(std::vector<Color> stops) : stops_(std::move(stops)) {}

  // `position` is clamped to [0, 1].
  Color at(double position) const;

 private:
  std::vector<Color> stops_;
};

// -------------------------------------------------------------------------------------------------
// Points, sizes and rectangles of a page. The unit is the typographic point (1/72 inch), x grows to
// the right and y downwards.

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

// -------------------------------------------------------------------------------------------------
// Axes: from data to the page, and where the ticks are.

enum class AxisScale { kLinear, kLog };

// How many times the place of 0 on a log axis the least other value is.
inline constexpr double kZeroGap = 2.5;
enum class NumberFormat { kPlain, kPercent };  // percent: 0.25 is "25 %"

struct AxisSpec {
  std::string label = {};
  AxisScale scale = AxisScale::kLinear;
  NumberFormat format = NumberFormat::kPlain;
  // Fixed ends; where low is not below high, the data decide, and `include` is kept in view.
  double low = 0, high = 0;
  std::vector<double> include = {};
  // Of a log axis: where 0 stands, everything else being kZeroGap times as far or more; 0: nowhere.
  double zero_at = 0;
  bool ends_on_ticks =
      false;           // as axes of bars do; otherwise there is a little air around the data
  bool whole = false;  // ticks of a linear axis at whole numbers only, as of layers
};

struct Tick {
  double value;
  std::string label;
};

// An axis that knows its ends.
class Axis {
 public:
  // Ends that hold all `data`. `most_ticks` is how many labels there is room for. On a log axis
  // every value must be above 0 (Error otherwise).
  Axis(const AxisSpec& spec, std::span<const double> data, int most_ticks);

  double low() const { return low_; }
  double high() const { return high_; }
  const std::vector<Tick>& ticks() const { return ticks_; }
  // Positions of unlabelled ticks between those of a log axis.
  const std::vector<double>& minor_ticks() const { return minor_ticks_; }

  // 0 at the low end, 1 at the high end; beyond them for values outside.
  double position(double value) const;

 private:
  void make_linear(const AxisSpec& spec, double low, double high, int most_ticks);
  void make_log(const AxisSpec& spec, double low, double high, int most_ticks);

  AxisScale scale_;
  double low_ = 0, high_ = 1;
  std::vector<Tick> ticks_;
  std::vector<double> minor_ticks_;
};

// As few digits as show `value` to `digits` significant ones, with a true minus sign: "−0.25",
// "1,500", "2.5 %".
std::string format_number(double value, int digits = 3, NumberFormat format = NumberFormat::kPlain);

// -------------------------------------------------------------------------------------------------
// How all figures look: the colours of filigree/palette.h, and the few sizes they share. Figures take
// everything visible from here, so that a new theme is one more value and no more code.

struct Theme {
  std::string name;

  Palette palette;

  // The same as figures use them; what each stands for is said there.
  Color page, panel, panel_border, plot, text, muted, grid, frame;
  Color empty;
  ColorRamp magnitude;
  ColorRamp negative, positive;  // from `empty` on
  Color undefined;

  // Of a difference in [-1, 1]: from `negative` through `empty`, the colour of none, to `positive`.
  Color difference_at(double part) const;

  std::vector<Color> categories;

  // Cyclic.
  const Color& category(std::size_t index) const { return categories[index % categories.size()]; }

  double text_size = 7;   // points; axis names, captions, legends
  double small_size = 6;  // tick labels
  double title_size = 9.5;
  double line_width = 1.1;
  double hair_width = 0.5;
};

const Theme& light_theme();  // screens, slides
const Theme& dark_theme();
const Theme& print_theme();  // papers: nothing tinted behind the data, black text

// "light", "dark" or "print"; throws Error that lists them for anything else.
const Theme& theme_named(std::string_view name);
const std::vector<std::string>& theme_names();

// -------------------------------------------------------------------------------------------------
// From a matrix of numbers to the small picture that stands for it on a page.
//
// A heat map is held as one byte a cell, its level, not as floats: a page of 288 maps of 256 tokens
// takes 19 MB that way. Levels keep what a reader must be able to tell apart:
//   0          nothing: above the diagonal, or exactly zero
//   1 .. 255   magnitude scale: from the least value above zero to the end of the scale
//   1 .. 255   difference scale: 128 - k is -k/127 and 128 + k is +k/127 of the scale's end; 128 is
//              an undefined value
// A value that is not zero never gets level 0, however small it is. On a scale of magnitudes its
// colour is visibly not that of zero, since an open edge is not a closed one; on a scale of
// differences colours run through the empty one, since a tiny difference of either sign means none.
//
// Where a map has more cells than the page has room for, cells are merged into the one with the
// largest magnitude, never averaged: one open edge among a thousand closed ones stays visible, and
// a pixel is empty only when every cell below it is.

enum class ScaleKind { kMagnitude, kDifference };

// A fixed scale: 0 to `end` for magnitudes, -`end` to `end` for differences. Values beyond are
// drawn as the end; negative magnitudes are an error.
struct ColorScale {
  ScaleKind kind = ScaleKind::kMagnitude;
  double end = 1;
};

// Cells in row-major order: row = query, column = key.
struct LevelMap {
  std::size_t rows = 0, columns = 0;
  std::vector<std::uint8_t> levels = {};
};

struct MapShape {
  std::size_t rows = 0, columns = 0;
  bool causal = true;  // what lies above the diagonal is neither read nor drawn
};

// Levels of `values` (shape.rows x shape.columns), merged to at most `most` rows and columns.
// `name` stands for the map in errors: a size that does not fit the values, a value that is NaN or
// infinite, a negative magnitude.
LevelMap make_levels(std::span<const float> values, const MapShape& shape, const ColorScale& scale,
                     std::string_view name, std::size_t most = 512);

// The level of one value; `undefined` (NaN) is level 128 of a difference scale.
std::uint8_t level_of(double value, const ColorScale& scale);

// The colour of every level.
LevelColors level_colors(const ColorScale& scale, const Theme& theme);

// Exactly `rows` x `columns` cells: merged where that is fewer, repeated where it is more.
LevelMap resample(const LevelMap& map, ScaleKind kind, std::size_t rows, std::size_t columns);

// Pixels as 0x00RRGGBB, row by row.
struct Raster {
  std::size_t width = 0, height = 0;
  std::vector<std::uint32_t> pixels = {};
};

Raster colorize(const LevelMap& map, const LevelColors& colors);

// -------------------------------------------------------------------------------------------------
// A figure: a page of a size and what is drawn on it. Figures are values, made by the functions of
// attention_grid.h, head_strip.h and so on, which check their input and decide the layout; drawing
// one cannot fail for reasons of the data, and may be done any number of times.

class Canvas;

struct Figure {
  std::string title;  // for the document's properties
  Size size;          // points
  Color background;
  std::function<void(Canvas&)> draw;
};

// -------------------------------------------------------------------------------------------------
// Figures as files. The ending of the name chooses the format:
//   .svg   vector; text as outlines, so that it looks the same without the fonts
//   .pdf   vector; text with embedded fonts, searchable
//   .png   pixels, with the resolution written into the file
// Heat maps are pictures inside the vector formats. Nothing in a file depends on the time or the
// machine: the same figure gives the same bytes.

enum class Format { kSvg, kPdf, kPng };

}  // namespace filigree::figure

namespace filigree {

// As endings of files.
template <>
inline constexpr auto kNames<figure::Format> = std::to_array<Named<figure::Format>>(
    {{figure::Format::kSvg, "svg"}, {figure::Format::kPdf, "pdf"}, {figure::Format::kPng, "png"}});

}  // namespace filigree

namespace filigree::figure {

struct SaveOptions {
  double dpi = 200;          // of a PNG
  double heatmap_dpi = 300;  // of heat maps inside SVG and PDF
};

// By the ending, in either case; nothing for any other.
inline std::optional<Format> find_format(const std::filesystem::path& path) {
  std::string ending = path.extension().string();
  for (char& c : ending)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return ending.empty() ? std::nullopt : find_name<Format>(ending.substr(1));
}
// The same; throws Error that lists the formats.
Format format_of(const std::filesystem::path& path);

// The bytes of the file.
std::string render(const Figure& figure, Format format, const SaveOptions& options = {});

// Replaces the file as a whole or not at all. Errors name the path.
void save(const Figure& figure, const std::filesystem::path& path, const SaveOptions& options = {});

}  // namespace filigree::figure
