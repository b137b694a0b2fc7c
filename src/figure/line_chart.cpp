#include "figure/line_chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "figure/page.h"
#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree::figure {

namespace {

constexpr double kTickLength = 2.5;
constexpr double kTickGap = 2;
constexpr double kNameGap = 3;

int ticks_for(double length, double distance) {
  return std::max(2, static_cast<int>(length / distance));
}

Axis x_axis_of(const LineChart& chart, double width) {
  std::vector<double> data;
  for (const Curve& curve : chart.curves) data.insert(data.end(), curve.x.begin(), curve.x.end());
  for (const PointMark& point : chart.points) data.push_back(point.x);
  AxisSpec spec = chart.x_axis;
  if (spec.scale == AxisScale::kLinear && !(spec.low < spec.high) && !data.empty()) {
    // Curves run from edge to edge: no rounding of the ends.
    const auto [low, high] = std::minmax_element(data.begin(), data.end());
    if (*low < *high) {
      spec.low = *low;
      spec.high = *high;
    }
  }
  return Axis(spec, data, ticks_for(width, spec.whole ? 20 : 44));  // whole numbers are short
}

Axis y_axis_of(const LineChart& chart, double height) {
  std::vector<double> data;
  for (const Curve& curve : chart.curves)
    for (const std::vector<double>* values : {&curve.y, &curve.low, &curve.high})
      data.insert(data.end(), values->begin(), values->end());
  for (const HorizontalMark& mark : chart.marks) data.push_back(mark.y);
  for (const PointMark& point : chart.points) data.push_back(point.y);
  return Axis(chart.y_axis, data, ticks_for(height, 20));
}

double widest_label(const Axis& axis, const Theme& theme) {
  double widest = 0;
  for (const Tick& tick : axis.ticks())
    widest = std::max(widest, text_size(tick.label, {.size = theme.small_size}).width);
  return widest;
}

Color color_of(const LineChart& chart, std::size_t curve, const Theme& theme) {
  return theme.category(curve < chart.curves.size() ? chart.curves[curve].category.value_or(curve)
                                                    : curve);
}

// Places notes beside their points where they hide neither curves, nor marks, nor one another.
class NotePlacer {
 public:
  NotePlacer(const Rect& area, std::vector<Point> obstacles)
      : area_(area), obstacles_(std::move(obstacles)) {}

  void block(const Rect& box) { boxes_.push_back(box); }

  // The one of `boxes` that hides least, the earlier of equals; it is blocked from then on.
  std::size_t choose(std::span<const Rect> boxes) {
    std::size_t best = 0;
    double best_cost = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      double cost = area_.contains(boxes[i]) ? 0 : 1000;
      for (const Rect& other : boxes_) cost += other.overlaps(boxes[i]) ? 50 : 0;
      for (const Point& obstacle : obstacles_) cost += boxes[i].contains(obstacle) ? 1 : 0;
      if (cost < best_cost) {
        best_cost = cost;
        best = i;
      }
    }
    block(boxes[best]);
    return best;
  }

 private:
  Rect area_;
  std::vector<Point> obstacles_;
  std::vector<Rect> boxes_;
};

// Points every two points along a line, for the placer.
void sample(std::span<const Point> line, std::vector<Point>& out) {
  for (std::size_t i = 0; i + 1 < line.size(); ++i) {
    const double length = std::hypot(line[i + 1].x - line[i].x, line[i + 1].y - line[i].y);
    const int steps = std::clamp(static_cast<int>(length / 2), 1, 500);
    for (int s = 0; s < steps; ++s) {
      const double part = static_cast<double>(s) / steps;
      out.push_back({line[i].x + part * (line[i + 1].x - line[i].x),
                     line[i].y + part * (line[i + 1].y - line[i].y)});
    }
  }
}

std::vector<Point> path_of(const Curve& curve, const std::vector<double>& values, auto&& to_page) {
  std::vector<Point> path;
  path.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Point point = to_page(curve.x[i], values[i]);
    if (curve.steps && i > 0) path.push_back({point.x, path.back().y});
    path.push_back(point);
  }
  return path;
}

// What lies below the resolution of any page is left out: of the points that share a tenth of a
// point, the first, lowest, highest and last. A run of a million steps stays a small file.
std::vector<Point> thinned(const std::vector<Point>& path) {
  if (path.size() < 4000) return path;
  std::vector<Point> out;
  std::size_t begin = 0;
  while (begin < path.size()) {
    std::size_t end = begin + 1, lowest = begin, highest = begin;
    while (end < path.size() && std::abs(path[end].x - path[begin].x) < 0.1) {
      if (path[end].y > path[lowest].y) lowest = end;
      if (path[end].y < path[highest].y) highest = end;
      ++end;
    }
    std::array<std::size_t, 4> kept = {begin, lowest, highest, end - 1};
    std::sort(kept.begin(), kept.end());
    for (std::size_t i = 0; i < kept.size(); ++i)
      if (i == 0 || kept[i] != kept[i - 1]) out.push_back(path[kept[i]]);
    begin = end;
  }
  return out;
}

void draw_axes(Canvas& canvas, const Rect& area, const Axis& x, const Axis& y,
               const LineChart& chart, const Theme& theme, bool shared_x) {
  const Stroke grid = {theme.grid, theme.hair_width};
  const Stroke mark = {theme.muted, theme.hair_width};
  const TextStyle number = {.size = theme.small_size, .color = theme.muted};
  canvas.fill(area, theme.plot);
  for (const Tick& tick : y.ticks()) {
    const double at = area.bottom() - y.position(tick.value) * area.height;
    canvas.line({area.x, at}, {area.right(), at}, grid);
    canvas.line({area.x - kTickLength, at}, {area.x, at}, mark);
    TextStyle style = number;
    style.align = Align::kRight;
    style.vertical = VerticalAlign::kMiddle;
    canvas.text({area.x - kTickLength - kTickGap, at}, tick.label, style);
  }
  for (const double value : y.minor_ticks()) {
    const double at = area.bottom() - y.position(value) * area.height;
    canvas.line({area.x - kTickLength / 2, at}, {area.x, at}, mark);
  }
  for (const Tick& tick : x.ticks()) {
    const double at = area.x + x.position(tick.value) * area.width;
    canvas.line({at, area.y}, {at, area.bottom()}, grid);
    canvas.line({at, area.bottom()}, {at, area.bottom() + kTickLength}, mark);
    if (shared_x) continue;
    TextStyle style = number;
    style.align = Align::kCenter;
    style.vertical = VerticalAlign::kTop;
    canvas.text({at, area.bottom() + kTickLength + kTickGap / 2}, tick.label, style);
  }
  for (const double value : x.minor_ticks()) {
    const double at = area.x + x.position(value) * area.width;
    canvas.line({at, area.bottom()}, {at, area.bottom() + kTickLength / 2}, mark);
  }
  if (!shared_x)
    canvas.text({area.center().x, area.bottom() + kTickLength + kTickGap / 2 +
                                      line_height(theme.small_size) + kNameGap / 2},
                chart.x_axis.label,
                {.size = theme.text_size,
                 .color = theme.text,
                 .align = Align::kCenter,
                 .vertical = VerticalAlign::kTop,
                 .max_width = area.width});
}

}  // namespace

void check_chart(const LineChart& chart, std::string_view what) {
  for (std::size_t c = 0; c < chart.curves.size(); ++c) {
    const Curve& curve = chart.curves[c];
    const std::string name = curve.label.empty()
                                 ? fmt::format("{}: curve {}", what, c)
                                 : fmt::format("{}: curve '{}'", what, printable(curve.label));
    require(curve.x.size() == curve.y.size(), "{} has {} x values and {} y values", name,
            curve.x.size(), curve.y.size());
    for (const std::vector<double>* band : {&curve.low, &curve.high})
      require(band->empty() ||
                  (band->size() == curve.y.size() && curve.low.size() == curve.high.size()),
              "{}: its band needs a lower and an upper end for each of its {} points", name,
              curve.y.size());
    const auto check = [&](const std::vector<double>& values, const AxisSpec& axis,
                           std::string_view which) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (!std::isfinite(values[i]))
          fail("{}: {} value {} is {}; figures need finite numbers", name, which, i, values[i]);
        if (axis.scale == AxisScale::kLog && !(values[i] > 0))
          fail(
              "{}: {} value {} is {}, which has no place on a logarithmic axis; leave it out or "
              "use a linear one",
              name, which, i, values[i]);
      }
    };
    check(curve.x, chart.x_axis, "x");
    check(curve.y, chart.y_axis, "y");
    check(curve.low, chart.y_axis, "lower");
    check(curve.high, chart.y_axis, "upper");
  }
}

double chart_left_margin(const LineChart& chart, double height, const Theme& theme) {
  const double name = chart.y_axis.label.empty() ? 0 : line_height(theme.text_size) + kNameGap;
  return widest_label(y_axis_of(chart, height), theme) + kTickLength + kTickGap + name;
}

double chart_bottom_margin(const LineChart& chart, const Theme& theme) {
  const double name = chart.x_axis.label.empty() ? 0 : line_height(theme.text_size) + kNameGap / 2;
  return kTickLength + kTickGap / 2 + line_height(theme.small_size) + name;
}

void draw_line_chart(Canvas& canvas, const Rect& area, const LineChart& chart, const Theme& theme,
                     bool shared_x, double left_margin) {
  const Axis x = x_axis_of(chart, area.width), y = y_axis_of(chart, area.height);
  const auto to_page = [&](double at_x, double at_y) {
    return Point{area.x + x.position(at_x) * area.width,
                 area.bottom() - y.position(at_y) * area.height};
  };
  draw_axes(canvas, area, x, y, chart, theme, shared_x);

  std::vector<Point> obstacles;
  {
    const Canvas::Clip clip(canvas, area.inset(-1));
    for (std::size_t c = 0; c < chart.curves.size(); ++c) {
      const Curve& curve = chart.curves[c];
      if (curve.low.empty()) continue;
      std::vector<Point> band = path_of(curve, curve.low, to_page);
      const std::vector<Point> upper = path_of(curve, curve.high, to_page);
      sample(band, obstacles);
      sample(upper, obstacles);
      band.insert(band.end(), upper.rbegin(), upper.rend());
      canvas.polygon(band, color_of(chart, c, theme).with_alpha(0.2));
    }
    for (const HorizontalMark& mark : chart.marks) {
      const Point left = to_page(x.low(), mark.y), right = to_page(x.high(), mark.y);
      canvas.line(left, right, {theme.muted, theme.hair_width * 1.6, {3, 2}});
      sample(std::array{left, right}, obstacles);
    }
    for (const PointMark& point : chart.points) {
      if (!point.drop_line) continue;
      const Point at = to_page(point.x, point.y);
      canvas.line(at, {at.x, area.bottom()},
                  {color_of(chart, point.curve, theme), theme.hair_width * 1.4, {1.2, 1.8}});
      sample(std::array{at, Point{at.x, area.bottom()}}, obstacles);
    }
    for (std::size_t c = 0; c < chart.curves.size(); ++c) {
      const Curve& curve = chart.curves[c];
      const Color color = color_of(chart, c, theme);
      const std::vector<Point> path = thinned(path_of(curve, curve.y, to_page));
      canvas.polyline(path, {color, theme.line_width,
                             curve.dashed ? std::vector<double>{3, 2} : std::vector<double>{}});
      // A single point would be no line at all.
      if (curve.markers || path.size() == 1) canvas.dots(path, 1.6, color);
      sample(path, obstacles);
    }
  }
  canvas.line({area.x, area.y}, {area.x, area.bottom()}, {theme.muted, theme.hair_width});
  canvas.line({area.x, area.bottom()}, {area.right(), area.bottom()},
              {theme.muted, theme.hair_width});
  if (!chart.y_axis.label.empty())
    canvas.text({area.x - std::max(left_margin, chart_left_margin(chart, area.height, theme)) +
                     line_height(theme.text_size) * 0.8,
                 area.center().y},
                chart.y_axis.label,
                {.size = theme.text_size,
                 .color = theme.text,
                 .align = Align::kCenter,
                 .angle = 90,
                 .max_width = area.height});

  NotePlacer placer(area, std::move(obstacles));
  for (const PointMark& point : chart.points) {
    const Point at = to_page(point.x, point.y);
    placer.block(Rect{at.x, at.y, 0, 0}.inset(-2.5));
  }
  // Text whose box is `box`.
  const auto write = [&](const Rect& box, const std::string& label, TextStyle style) {
    style.vertical = VerticalAlign::kMiddle;
    canvas.text({box.x, box.center().y}, label, style);
  };
  for (const HorizontalMark& mark : chart.marks) {
    if (mark.label.empty()) continue;
    const TextStyle style = {.size = theme.small_size, .color = theme.muted};
    const Size size = text_size(mark.label, style);
    const double y_of_mark = to_page(x.low(), mark.y).y;
    std::vector<Rect> boxes;
    for (const double at : {area.right() - size.width - 3, area.x + 4})
      for (const double top : {y_of_mark - size.height, y_of_mark + 0.5})
        boxes.push_back({at, top, size.width, size.height - 0.5});
    write(boxes[placer.choose(boxes)], mark.label, style);
  }
  // From the left: of points close together the left one has its note on the left.
  std::vector<PointMark> points = chart.points;
  std::stable_sort(points.begin(), points.end(),
                   [](const PointMark& a, const PointMark& b) { return a.x < b.x; });
  for (const PointMark& point : points) {
    const Point at = to_page(point.x, point.y);
    canvas.dots(std::array{at}, 2.2, color_of(chart, point.curve, theme), {theme.plot, 0.7});
    if (point.label.empty()) continue;
    const Color color = point.colored ? color_of(chart, point.curve, theme) : theme.text;
    const TextStyle style = {.size = theme.text_size, .color = color, .bold = true};
    const Size size = text_size(point.label, style);
    std::vector<Rect> boxes;
    for (const double distance : {7.0, 12.0, 19.0, 30.0}) {
      for (const auto& [dx, dy] : {std::pair{-1, -1}, {1, 1}, {1, -1}, {-1, 1}, {1, 0}, {-1, 0}}) {
        const double side = at.x + dx * distance * (dy == 0 ? 1 : 0.7);
        boxes.push_back({dx > 0 ? side : side - size.width, at.y + dy * distance - size.height / 2,
                         size.width, size.height});
      }
    }
    // Where curves leave no room around the point, the note stands beside its drop line.
    if (point.drop_line)
      for (double y_of_note = at.y + 15; y_of_note < area.bottom() - size.height; y_of_note += 10)
        for (const double left : {at.x + 4, at.x - 4 - size.width})
          boxes.push_back({left, y_of_note, size.width, size.height});
    const Rect& box = boxes[placer.choose(boxes)];
    canvas.fill(box.inset(-1), theme.plot.with_alpha(0.75));  // no line strikes the text out
    write(box, point.label, style);
  }
}

Figure line_figure(const LineFigure& input, const Theme& theme) {
  check_chart(input.chart, "line chart");
  require(!input.chart.curves.empty(), "line chart: there is no curve to draw");
  std::vector<LegendEntry> legend;
  for (std::size_t c = 0; c < input.chart.curves.size(); ++c)
    if (!input.chart.curves[c].label.empty())
      legend.push_back({input.chart.curves[c].label, color_of(input.chart, c, theme), true,
                        input.chart.curves[c].dashed});
  PageParts parts = {.title = input.title};
  if (!input.caption.empty()) parts.captions.push_back(input.caption);
  const LineChart chart = input.chart;
  const double width = input.width, height = input.height;
  return make_page(parts, {width, height}, theme, [=](Canvas& canvas, const Rect& body) {
    // The legend is as wide as the chart, whose width depends on the labels of the y axis.
    const double bottom = chart_bottom_margin(chart, theme);
    Rect area = {0, 0, 0, body.height - bottom};
    area.x = body.x + chart_left_margin(chart, area.height, theme);
    area.width = body.right() - area.x - 6;
    const double top = legend_height(legend, area.width, theme) + (legend.empty() ? 3 : 5);
    area.y = body.y + top;
    area.height -= top;
    draw_legend(canvas, {area.x, body.y}, area.width, legend, theme);
    draw_line_chart(canvas, area, chart, theme);
  });
}

}  // namespace filigree::figure
