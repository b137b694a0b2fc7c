#include "figure/graph_layout.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

namespace filigree::figure {

namespace {

constexpr double kLabelRoom = 30;  // left of the rows, for the layers' names
constexpr double kNodeHeight = 11;
constexpr double kHeadWidth = 27, kMlpWidth = 29;
constexpr double kHeadGap = 7;  // least distance of neighbours in a row
constexpr double kSubRow = 24;  // between the rows of one layer that needs several
constexpr double kClearance = 2.5;
constexpr int kSweeps = 12;
constexpr double kPortSpread = 0.32;  // of a head's width, to q on the left and v on the right

// Nodes that stand in rows; MLPs have a column of their own at the right.
bool in_rows(ComponentKind kind) {
  return kind == ComponentKind::kHead || kind == ComponentKind::kExpert;
}

// Nodes at one height.
struct Level {
  double y = 0;  // middle
  std::vector<std::size_t> nodes = {};
};

class Layout {
 public:
  Layout(const CircuitGraph& graph, const LayoutOptions& options)
      : graph_(graph), options_(options), width_(options.width) {
    has_mlps_ = any_has(ComponentKind::kMlp);
    result_.nodes.resize(graph.nodes.size());
    place_levels();
    order_heads();
    for (const GraphEdge& edge : graph.edges) result_.edges.push_back(ends_of(edge));
    route();
  }

  GraphLayout take() { return std::move(result_); }

 private:
  // Whether this graph or one beside it has such a node.
  bool any_has(ComponentKind kind) const {
    const auto has = [&](const CircuitGraph& graph) {
      return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                         [&](const Component& node) { return node.kind == kind; });
    };
    return has(graph_) || std::any_of(options_.beside.begin(), options_.beside.end(),
                                      [&](const CircuitGraph* graph) { return has(*graph); });
  }

  // The most heads, or experts, of each layer in this graph or one beside it; 0 where there are
  // others only.
  std::map<std::int64_t, std::size_t> most_of(ComponentKind kind) const {
    std::map<std::int64_t, std::size_t> most;
    const auto count = [&](const CircuitGraph& graph) {
      std::map<std::int64_t, std::size_t> found;
      for (const Component& node : graph.nodes)
        if (in_rows(node.kind) || node.kind == ComponentKind::kMlp)
          found[node.layer] += node.kind == kind ? 1 : 0;
      for (const auto& [layer, number] : found) most[layer] = std::max(most[layer], number);
    };
    count(graph_);
    for (const CircuitGraph* graph : options_.beside) count(*graph);
    return most;
  }

  std::size_t most_edges() const {
    std::size_t most = graph_.edges.size();
    for (const CircuitGraph* graph : options_.beside) most = std::max(most, graph->edges.size());
    return most;
  }

  double left() const { return kLabelRoom; }
  double right() const { return has_mlps_ ? width_ - kMlpWidth - 14 : width_ - 4; }

  // Heights, from the bottom up; y is measured from the bottom until the total is known.
  void place_levels() {
    std::map<std::int64_t, std::vector<std::size_t>> heads, mlps, experts;
    std::vector<std::size_t> inputs, logits;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Component& node = graph_.nodes[i];
      switch (node.kind) {
        case ComponentKind::kInput: inputs.push_back(i); break;
        case ComponentKind::kHead: heads[node.layer].push_back(i); break;
        case ComponentKind::kMlp: mlps[node.layer].push_back(i); break;
        case ComponentKind::kExpert: experts[node.layer].push_back(i); break;
        case ComponentKind::kLogits: logits.push_back(i); break;
      }
    }
    const std::map<std::int64_t, std::size_t> layers = most_of(ComponentKind::kHead);
    const std::map<std::int64_t, std::size_t> most_experts = most_of(ComponentKind::kExpert);
    // Few layers can afford more air, many edges need it.
    const double pitch = (layers.size() <= 6    ? 46
                          : layers.size() <= 14 ? 38
                                                : 30) +
                         (most_edges() > 80 ? 5 : 0);
    const auto per_row = static_cast<std::size_t>(
        std::max(1.0, (right() - left() + kHeadGap) / (kHeadWidth + kHeadGap)));

    double y = kNodeHeight / 2 + 1;
    if (!inputs.empty()) levels_.push_back({y, inputs});
    if (any_has(ComponentKind::kInput)) y += pitch;
    for (const auto& [layer, most] : layers) {
      result_.layers.push_back({layer, y});
      y = place_rows(heads[layer], most, per_row, y);
      if (!mlps[layer].empty()) levels_.push_back({y + pitch / 2, mlps[layer]});
      y += pitch;
      if (most_experts.at(layer) > 0)
        y = place_rows(experts[layer], most_experts.at(layer), per_row, y) + pitch;
    }
    if (!logits.empty()) levels_.push_back({y, logits});
    if (!any_has(ComponentKind::kLogits)) y -= pitch / 2;
    const double height = y + kNodeHeight / 2 + 1;
    result_.size = {width_, height};
    for (LayerLabel& label : result_.layers) label.y = height - label.y;
    for (Level& level : levels_) {
      level.y = height - level.y;
      for (std::size_t i = 0; i < level.nodes.size(); ++i) place(level, i);
    }
  }

  // A layer's heads or experts from the height `y` on, in as many rows as `most` need; the height
  // of the last.
  double place_rows(std::vector<std::size_t>& row, std::size_t most, std::size_t per_row,
                    double y) {
    std::sort(row.begin(), row.end(), [&](std::size_t a, std::size_t b) {
      const Component &first = graph_.nodes[a], &second = graph_.nodes[b];
      return std::pair(first.head, first.expert) < std::pair(second.head, second.expert);
    });
    for (std::size_t begin = 0; begin < most; begin += per_row) {
      if (begin > 0) y += kSubRow;
      if (begin >= row.size()) continue;
      const std::size_t end = std::min(begin + per_row, row.size());
      levels_.push_back({y,
                         {row.begin() + static_cast<std::ptrdiff_t>(begin),
                          row.begin() + static_cast<std::ptrdiff_t>(end)}});
    }
    return y;
  }

  // The box of a level's i-th node, in evenly spread places.
  void place(const Level& level, std::size_t i) {
    const std::size_t node = level.nodes[i];
    const double room = right() - left();
    Rect box = {0, level.y - kNodeHeight / 2, kHeadWidth, kNodeHeight};
    switch (graph_.nodes[node].kind) {
      case ComponentKind::kInput:
      case ComponentKind::kLogits:
        // Wide, so that the many edges at them fan out.
        box.width = 0.62 * room;
        box.x = left() + (room - box.width) / 2;
        break;
      case ComponentKind::kMlp:
        box.width = kMlpWidth;
        box.x = width_ - kMlpWidth - 1;
        break;
      case ComponentKind::kExpert:
      case ComponentKind::kHead:
        box.x = left() +
                (static_cast<double>(i) + 0.5) / static_cast<double>(level.nodes.size()) * room -
                kHeadWidth / 2;
    }
    result_.nodes[node] = box;
  }

  double middle(std::size_t node) const { return result_.nodes[node].center().x; }

  // Sorts each row by the mean place of what its heads are connected to, a few times over, then
  // lets heads leave their even places a little towards it.
  void order_heads() {
    std::vector<double> pull(graph_.nodes.size());
    const auto measure = [&] {
      std::vector<double> weight(graph_.nodes.size(), 1e-9);
      for (std::size_t i = 0; i < pull.size(); ++i) pull[i] = 1e-9 * middle(i);
      for (const GraphEdge& edge : graph_.edges) {
        // The square root: one strong edge should not outvote ten weak ones.
        const double w = std::sqrt(std::abs(edge.score)) + 1e-6;
        pull[edge.from] += w * middle(edge.to), weight[edge.from] += w;
        pull[edge.to] += w * middle(edge.from), weight[edge.to] += w;
      }
      for (std::size_t i = 0; i < pull.size(); ++i) pull[i] /= weight[i];
    };
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      measure();
      for (Level& level : levels_) {
        if (!in_rows(graph_.nodes[level.nodes[0]].kind)) continue;
        std::stable_sort(level.nodes.begin(), level.nodes.end(),
                         [&](std::size_t a, std::size_t b) { return pull[a] < pull[b]; });
        for (std::size_t i = 0; i < level.nodes.size(); ++i) place(level, i);
      }
    }
    measure();
    for (const Level& level : levels_)
      if (in_rows(graph_.nodes[level.nodes[0]].kind)) nudge(level, pull);
  }

  void nudge(const Level& level, const std::vector<double>& pull) {
    constexpr double kPart = 0.4;
    const double step = kHeadWidth + kHeadGap;
    double least = left();
    for (std::size_t i = 0; i < level.nodes.size(); ++i) {
      Rect& box = result_.nodes[level.nodes[i]];
      const double wanted = box.x + kPart * (pull[level.nodes[i]] - box.center().x);
      const double most =
          right() - kHeadWidth - step * static_cast<double>(level.nodes.size() - 1 - i);
      box.x = std::max(least, std::min(wanted, most));
      least = box.x + step;
    }
  }

  // Both ends of an edge; those at one side of a node are put beside each other by route().
  std::vector<Point> ends_of(const GraphEdge& edge) const {
    const Rect &from = result_.nodes[edge.from], &to = result_.nodes[edge.to];
    double x = to.center().x;
    if (edge.input == GraphInput::kQuery) x -= kPortSpread * to.width;
    if (edge.input == GraphInput::kValue) x += kPortSpread * to.width;
    return {{from.center().x, from.y}, {x, to.bottom()}};
  }

  // Spreads the ends at every node so that edges leave and enter in the order of where they go.
  void spread_ends() {
    const auto spread = [&](std::vector<std::size_t>& edges, const Rect& box, bool starts) {
      std::stable_sort(edges.begin(), edges.end(), [&](std::size_t a, std::size_t b) {
        const auto far = [&](std::size_t e) {
          return starts ? result_.edges[e].back().x : middle(graph_.edges[e].from);
        };
        return far(a) < far(b);
      });
      const auto count = static_cast<double>(edges.size());
      const double reach = std::min(0.86 * box.width, (count - 1) * (box.width > 60 ? 9 : 3));
      for (std::size_t i = 0; i < edges.size(); ++i) {
        std::vector<Point>& line = result_.edges[edges[i]];
        Point& end = starts ? line.front() : line.back();
        end.x = box.center().x;
        if (count > 1) end.x += (static_cast<double>(i) / (count - 1) - 0.5) * reach;
      }
    };
    std::vector<std::vector<std::size_t>> leaving(graph_.nodes.size()),
        entering(graph_.nodes.size());
    for (std::size_t e = 0; e < graph_.edges.size(); ++e) {
      leaving[graph_.edges[e].from].push_back(e);
      if (graph_.edges[e].input == GraphInput::kNone) entering[graph_.edges[e].to].push_back(e);
    }
    for (std::size_t node = 0; node < graph_.nodes.size(); ++node) {
      spread(entering[node], result_.nodes[node], false);
      spread(leaving[node], result_.nodes[node], true);
    }
  }

  // The stretches of a level that nodes take, joined where nothing fits between them.
  struct Blocked {
    double begin, end;
    int pushed_left = 0, pushed_right = 0;  // edges that go past it
  };
  std::vector<std::vector<Blocked>> blocked_levels() const {
    std::vector<std::vector<Blocked>> all;
    for (const Level& level : levels_) {
      std::vector<Blocked> blocked;
      for (const std::size_t node : level.nodes)
        blocked.push_back(
            {result_.nodes[node].x - kClearance, result_.nodes[node].right() + kClearance});
      std::sort(blocked.begin(), blocked.end(),
                [](const Blocked& a, const Blocked& b) { return a.begin < b.begin; });
      std::vector<Blocked> joined;
      for (const Blocked& one : blocked) {
        if (!joined.empty() && one.begin <= joined.back().end)
          joined.back().end = std::max(joined.back().end, one.end);
        else
          joined.push_back(one);
      }
      all.push_back(std::move(joined));
    }
    return all;
  }

  void route() {
    spread_ends();
    std::vector<std::vector<Blocked>> blocked = blocked_levels();
    for (std::vector<Point>& line : result_.edges) {
      const Point start = line.front(), end = line.back();
      std::vector<Point> way = {start};
      for (std::size_t l = 0; l < levels_.size(); ++l) {
        const double y = levels_[l].y;
        if (y + kNodeHeight / 2 >= start.y || y - kNodeHeight / 2 <= end.y) continue;
        const Point last = way.back();
        const double wished = last.x + (end.x - last.x) * (last.y - y) / (last.y - end.y);
        const double x = free_place(blocked[l], wished);
        if (x == wished) {
          way.push_back({x, y});
        } else {  // straight through the gap
          way.push_back({x, y + kNodeHeight / 2 + 1});
          way.push_back({x, y - kNodeHeight / 2 - 1});
        }
      }
      way.push_back(end);
      line = smooth(way);
    }
  }

  // `x`, or the nearest place beside what is in its way; edges that share a side keep apart while
  // there is room.
  double free_place(std::vector<Blocked>& level, double x) const {
    constexpr double kLane = 1.7;
    for (std::size_t i = 0; i < level.size(); ++i) {
      Blocked& block = level[i];
      if (x <= block.begin || x >= block.end) continue;
      const double before = i > 0 ? level[i - 1].end : 0;
      const double after = i + 1 < level.size() ? level[i + 1].begin : width_;
      const bool go_left =
          block.begin > 1 && (x - block.begin < block.end - x || block.end > width_ - 1);
      int& lane = go_left ? block.pushed_left : block.pushed_right;
      const double offset = kLane * lane++;
      return go_left ? std::max(block.begin - offset, (block.begin + before) / 2)
                     : std::min(block.end + offset, (block.end + after) / 2);
    }
    return x;
  }

  // A curve through the points, vertical at both ends, x as a function of y.
  static std::vector<Point> smooth(const std::vector<Point>& way) {
    std::vector<double> slope(way.size(), 0.0);
    for (std::size_t i = 1; i + 1 < way.size(); ++i) {
      const double before = (way[i].x - way[i - 1].x) / (way[i].y - way[i - 1].y);
      const double after = (way[i + 1].x - way[i].x) / (way[i + 1].y - way[i].y);
      // The harmonic mean keeps the curve from overshooting; opposite signs mean a turn.
      slope[i] = before * after <= 0 ? 0 : 2 * before * after / (before + after);
    }
    std::vector<Point> line = {way[0]};
    for (std::size_t i = 0; i + 1 < way.size(); ++i) {
      const double height = way[i + 1].y - way[i].y;
      const double distance = std::hypot(way[i + 1].x - way[i].x, height);
      const int steps = std::clamp(static_cast<int>(distance / 3), 6, 60);
      for (int step = 1; step <= steps; ++step) {
        const double t = static_cast<double>(step) / steps, t2 = t * t, t3 = t2 * t;
        line.push_back({(2 * t3 - 3 * t2 + 1) * way[i].x + (t3 - 2 * t2 + t) * height * slope[i] +
                            (3 * t2 - 2 * t3) * way[i + 1].x + (t3 - t2) * height * slope[i + 1],
                        way[i].y + t * height});
      }
    }
    return line;
  }

  const CircuitGraph& graph_;
  const LayoutOptions& options_;
  double width_;
  bool has_mlps_ = false;
  std::vector<Level> levels_;  // from the bottom up
  GraphLayout result_;
};

}  // namespace

GraphLayout layout_graph(const CircuitGraph& graph, const LayoutOptions& options) {
  return Layout(graph, options).take();
}

}  // namespace filigree::figure
