#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "filigree/error.h"
#include "filigree/figures.h"

namespace filigree::figure {

namespace {

constexpr int kMiddle = 128;  // of a difference scale

// Which of two levels stays when cells are merged.
struct HeavierMagnitude {
  std::uint8_t operator()(std::uint8_t a, std::uint8_t b) const { return std::max(a, b); }
};
struct HeavierDifference {
  static int weight(std::uint8_t level) { return level == 0 ? 0 : 1 + std::abs(level - kMiddle); }
  std::uint8_t operator()(std::uint8_t a, std::uint8_t b) const {
    return weight(b) > weight(a) ? b : a;
  }
};

// The range of source cells that target cell `index` of `count` stands for.
struct CellRange {
  std::size_t begin, end;
};

CellRange source_range(std::size_t index, std::size_t count, std::size_t source) {
  if (count >= source) {  // the cell below the middle of the pixel
    const std::size_t cell = (2 * index + 1) * source / (2 * count);
    return {cell, cell + 1};
  }
  return {index * source / count, ((index + 1) * source + count - 1) / count};
}

std::vector<CellRange> source_ranges(std::size_t count, std::size_t source) {
  std::vector<CellRange> ranges(count);
  for (std::size_t i = 0; i < count; ++i) ranges[i] = source_range(i, count, source);
  return ranges;
}

// First whole rows, in loops that vectorise, then the columns of what is left.
template <typename Heavier>
LevelMap resample_with(const LevelMap& map, std::size_t rows, std::size_t columns,
                       const Heavier& heavier) {
  const std::vector<CellRange> row_ranges = source_ranges(rows, map.rows);
  const std::vector<CellRange> column_ranges = source_ranges(columns, map.columns);
  LevelMap result = {rows, columns, std::vector<std::uint8_t>(rows * columns)};
  std::vector<std::uint8_t> merged(map.columns);
  for (std::size_t row = 0; row < rows; ++row) {
    const auto [first, end] = row_ranges[row];
    const std::uint8_t* source = map.levels.data() + first * map.columns;
    std::copy_n(source, map.columns, merged.begin());
    for (std::size_t i = first + 1; i < end; ++i) {
      source += map.columns;
      for (std::size_t j = 0; j < map.columns; ++j) merged[j] = heavier(merged[j], source[j]);
    }
    std::uint8_t* out = result.levels.data() + row * columns;
    for (std::size_t column = 0; column < columns; ++column) {
      std::uint8_t level = merged[column_ranges[column].begin];
      for (std::size_t j = column_ranges[column].begin + 1; j < column_ranges[column].end; ++j)
        level = heavier(level, merged[j]);
      out[column] = level;
    }
  }
  return result;
}

}  // namespace

std::uint8_t level_of(double value, const ColorScale& scale) {
  if (scale.kind == ScaleKind::kMagnitude) {
    if (!(value > 0)) return 0;
    return static_cast<std::uint8_t>(1 + std::lround(std::min(value / scale.end, 1.0) * 254));
  }
  if (std::isnan(value)) return kMiddle;
  if (value == 0) return 0;
  const double part = std::min(std::abs(value) / scale.end, 1.0);
  const long step = std::max(1L, std::lround(part * 127));
  return static_cast<std::uint8_t>(value < 0 ? kMiddle - step : kMiddle + step);
}

LevelColors level_colors(const ColorScale& scale, const Theme& theme) {
  LevelColors colors;
  colors[0] = theme.empty;
  for (int level = 1; level < 256; ++level) {
    Color& color = colors[static_cast<std::size_t>(level)];
    if (scale.kind == ScaleKind::kMagnitude) {
      color = theme.magnitude.at((level - 1) / 254.0);
    } else if (level == kMiddle) {
      color = theme.undefined;
    } else {
      color = theme.difference_at((level - kMiddle) / 127.0);
    }
  }
  return colors;
}

LevelMap make_levels(std::span<const float> values, const MapShape& shape, const ColorScale& scale,
                     std::string_view name, std::size_t most) {
  require(shape.rows > 0 && shape.columns > 0, "{}: the map has no cells", name);
  require(values.size() / shape.columns == shape.rows && values.size() % shape.columns == 0,
          "{}: {} values for a map of {} x {}", name, values.size(), shape.rows, shape.columns);
  require(std::isfinite(scale.end) && scale.end > 0,
          "{}: the colour scale ends at {}, but must end above 0", name, scale.end);
  LevelMap map = {shape.rows, shape.columns, std::vector<std::uint8_t>(values.size())};
  for (std::size_t row = 0; row < shape.rows; ++row) {
    const std::size_t columns = shape.causal ? std::min(row + 1, shape.columns) : shape.columns;
    for (std::size_t column = 0; column < columns; ++column) {
      const float value = values[row * shape.columns + column];
      if (!std::isfinite(value)) [[unlikely]]
        fail("{}: the value at query {}, key {} is {}; figures need finite numbers", name, row,
             column, value);
      if (value < 0 && scale.kind == ScaleKind::kMagnitude) [[unlikely]]
        fail(
            "{}: the value at query {}, key {} is {}; a scale from 0 cannot show it, a difference "
            "scale can",
            name, row, column, value);
      map.levels[row * shape.columns + column] = level_of(value, scale);
    }
  }
  if (shape.rows <= most && shape.columns <= most) return map;
  return resample(map, scale.kind, std::min(shape.rows, most), std::min(shape.columns, most));
}

LevelMap resample(const LevelMap& map, ScaleKind kind, std::size_t rows, std::size_t columns) {
  if (rows == map.rows && columns == map.columns) return map;
  return kind == ScaleKind::kMagnitude ? resample_with(map, rows, columns, HeavierMagnitude())
                                       : resample_with(map, rows, columns, HeavierDifference());
}

Raster colorize(const LevelMap& map, const LevelColors& colors) {
  std::array<std::uint32_t, 256> pixel_of_level;
  std::transform(colors.begin(), colors.end(), pixel_of_level.begin(),
                 [](const Color& color) { return color.rgb(); });
  Raster raster = {map.columns, map.rows, std::vector<std::uint32_t>(map.levels.size())};
  std::transform(map.levels.begin(), map.levels.end(), raster.pixels.begin(),
                 [&](std::uint8_t level) { return pixel_of_level[level]; });
  return raster;
}

}  // namespace filigree::figure
