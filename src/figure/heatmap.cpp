#include "figure/heatmap.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "base/error.h"

namespace filigree::figure {

namespace {

constexpr int kMiddle = 128;  // of a difference scale

// How much a level weighs when cells are merged.
int weight(std::uint8_t level, ScaleKind kind) {
  if (kind == ScaleKind::kMagnitude || level == 0) return level;
  return 1 + std::abs(level - kMiddle);
}

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

}  // namespace

std::uint8_t level_of(double value, const ColorScale& scale) {
  if (scale.kind == ScaleKind::kMagnitude) {
    if (!(value > 0)) return 0;
    return static_cast<std::uint8_t>(1 + std::lround(std::min(value / scale.end, 1.0) * 254));
  }
  if (std::isnan(value)) return kMiddle;
  if (value == 0) return 0;
  const double part = std::min(std::abs(value) / scale.end, 1.0);
  const int step = std::max(1, static_cast<int>(std::lround(part * 127)));
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
      const ColorRamp& ramp = level < kMiddle ? theme.negative : theme.positive;
      color = ramp.at((std::abs(level - kMiddle) - 1) / 126.0);
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
  const std::vector<CellRange> row_ranges = source_ranges(rows, map.rows);
  const std::vector<CellRange> column_ranges = source_ranges(columns, map.columns);
  std::array<int, 256> weights;
  for (std::size_t level = 0; level < weights.size(); ++level)
    weights[level] = weight(static_cast<std::uint8_t>(level), kind);
  LevelMap result = {rows, columns, std::vector<std::uint8_t>(rows * columns)};
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      std::uint8_t heaviest = 0;
      for (std::size_t i = row_ranges[row].begin; i < row_ranges[row].end; ++i) {
        for (std::size_t j = column_ranges[column].begin; j < column_ranges[column].end; ++j) {
          const std::uint8_t level = map.levels[i * map.columns + j];
          if (weights[level] > weights[heaviest]) heaviest = level;
        }
      }
      result.levels[row * columns + column] = heaviest;
    }
  }
  return result;
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
