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
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "figure/color.h"
#include "figure/theme.h"

namespace filigree::figure {

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

}  // namespace filigree::figure
