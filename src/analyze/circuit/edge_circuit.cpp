#include "analyze/circuit/edge_circuit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <queue>
#include <set>

#include "filigree/error.h"

namespace filigree {
namespace {

std::vector<std::int64_t> connected_first(const ComponentGraph& graph,
                                          const std::vector<std::int64_t>& order,
                                          std::size_t count) {
  return graph.connected({order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count)});
}

GraphInput drawn_input(Branch branch) {
  switch (branch) {
    case Branch::kQuery: return GraphInput::kQuery;
    case Branch::kKey: return GraphInput::kKey;
    case Branch::kValue: return GraphInput::kValue;
    case Branch::kMlp:
    case Branch::kLogits: break;
  }
  return GraphInput::kNone;
}

}  // namespace

std::vector<std::int64_t> EdgeCurve::edges_of(const ComponentGraph& graph,
                                              const CurvePoint& point) const {
  return connected_first(graph, order, point.kept);
}

EdgeCurve keep_edges(const Model& model, const ComponentGraph& graph,
                     const std::vector<TaskPrompt>& prompts, std::vector<std::int64_t> order,
                     std::vector<std::size_t> sizes, std::optional<double> level,
                     const PatchOptions& options) {
  if (sizes.empty()) sizes = spread_sizes(order.size());
  EdgeCurve curve;
  std::map<std::size_t, std::size_t> parts;  // of each size
  static_cast<Curve&>(curve) = measured_curve(
      order.size(), std::move(sizes), level, options,
      [&](const std::vector<std::size_t>& kept, const PatchOptions& watched) {
        // More edges of one order hold fewer ones, so as many connected ones are the same ones.
        std::vector<EdgeSet> sets;
        std::map<std::size_t, std::size_t> set_of;  // by the number of connected edges
        for (const std::size_t count : kept) {
          EdgeSet set;
          set.kept = true;
          set.edges = connected_first(graph, order, count);
          parts[count] = set.edges.size();
          if (set_of.try_emplace(set.edges.size(), sets.size()).second)
            sets.push_back(std::move(set));
        }
        PatchOptions by_set = watched;
        if (watched.seen)
          by_set.seen = [&](std::size_t set, const PatchedRuns& so_far) {
            for (std::size_t k = 0; k < kept.size(); ++k)
              if (set_of.at(parts.at(kept[k])) == set) watched.seen(k, so_far);
          };
        const PatchedRuns runs = run_edges(model, graph, prompts, sets, by_set);
        PatchedRuns all;
        all.clean = runs.clean, all.corrupt = runs.corrupt;
        for (const std::size_t count : kept)
          all.patched.push_back(runs.patched[set_of.at(parts.at(count))]);
        return all;
      });
  for (CurvePoint& point : curve.points) point.parts = parts.at(point.kept);
  curve.order = std::move(order);
  return curve;
}

std::vector<std::int64_t> greedy_edge_order(const ComponentGraph& graph, const EdgeScores& scores) {
  require(static_cast<std::int64_t>(scores.drops.size()) == graph.edges(),
          "edges: {} scores for {} edges", scores.drops.size(), graph.edges());
  using Entry = std::pair<double, std::int64_t>;  // absolute score; minus the edge, for ties
  std::priority_queue<Entry> open;
  std::vector<bool> seen(graph.inputs().size());
  const auto reach = [&](std::int64_t index) {
    if (seen[static_cast<std::size_t>(index)]) return;
    seen[static_cast<std::size_t>(index)] = true;
    const ComponentInput& input = graph.inputs()[static_cast<std::size_t>(index)];
    for (std::int64_t u = 0; u < input.before; ++u) {
      const std::int64_t number = input.first + u;
      open.emplace(std::abs(scores.drops[static_cast<std::size_t>(number)].mean), -number);
    }
  };
  reach(graph.logits());
  std::vector<std::int64_t> order;
  while (!open.empty()) {
    const std::int64_t number = -open.top().second;
    open.pop();
    order.push_back(number);
    for (const std::int64_t input : graph.inputs_of(graph.edge(number).node)) reach(input);
  }
  return order;
}

CircuitGraph drawn_edges(const ComponentGraph& graph, const std::vector<std::int64_t>& edges,
                         const EdgeScores& scores) {
  const auto logits = static_cast<std::int64_t>(graph.nodes().size());  // after all nodes
  std::set<std::int64_t> senders;
  for (const std::int64_t number : edges) senders.insert(graph.edge(number).node);
  struct Drawn {
    std::int64_t from, to;
    GraphInput input;
    double score;
  };
  std::vector<Drawn> drawn;
  std::map<std::int64_t, std::size_t> place;  // of the nodes that edges touch
  for (const std::int64_t number : edges) {
    const ComponentEdge edge = graph.edge(number);
    const Branch branch = graph.inputs()[static_cast<std::size_t>(edge.input)].branch;
    std::vector<std::int64_t> ends = graph.fed_by(edge.input);
    if (ends.size() > 1)
      std::erase_if(ends, [&](std::int64_t node) { return senders.count(node) == 0; });
    if (branch == Branch::kLogits) ends = {logits};
    for (const std::int64_t end : ends) {
      place[edge.node] = place[end] = 0;
      drawn.push_back({edge.node, end, drawn_input(branch),
                       scores.drops[static_cast<std::size_t>(number)].mean});
    }
  }
  CircuitGraph result;
  for (auto& [node, at] : place) {
    at = result.nodes.size();
    result.nodes.push_back(node == logits ? Component{ComponentKind::kLogits}
                                          : graph.nodes()[static_cast<std::size_t>(node)]);
  }
  for (const Drawn& edge : drawn)
    result.edges.push_back({place[edge.from], place[edge.to], edge.input, edge.score});
  return result;
}

}  // namespace filigree
