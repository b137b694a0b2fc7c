#include "analyze/circuit/graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "filigree/error.h"

namespace filigree {

ComponentGraph::ComponentGraph(const ModelConfig& config)
    : layers_(config.layers),
      heads_(config.heads),
      key_heads_(config.key_heads),
      mlps_(config.mlp == MlpKind::kNone ? 0 : 1),
      parallel_(config.residual == ResidualKind::kParallel) {
  require(layers_ > 0 && heads_ > 0 && key_heads_ > 0 && heads_ % key_heads_ == 0,
          "graph: {} layers of {} heads and {} key heads make no graph", layers_, heads_,
          key_heads_);
  nodes_.push_back({});
  std::int64_t before = 0;  // nodes that an input reads
  const auto read = [&](Branch branch, std::int64_t layer, std::int64_t head) {
    inputs_.push_back({branch, layer, head, before, edges_});
    edges_ += before;
  };
  const auto count = [&] { return static_cast<std::int64_t>(nodes_.size()); };
  for (std::int64_t l = 0; l < layers_; ++l) {
    before = count();
    for (std::int64_t h = 0; h < heads_; ++h) read(Branch::kQuery, l, h);
    for (std::int64_t g = 0; g < key_heads_; ++g) read(Branch::kKey, l, g);
    for (std::int64_t g = 0; g < key_heads_; ++g) read(Branch::kValue, l, g);
    for (std::int64_t h = 0; h < heads_; ++h) nodes_.push_back({ComponentKind::kHead, l, h});
    if (!has_mlps()) continue;
    if (!parallel_) before = count();
    read(Branch::kMlp, l, -1);
    nodes_.push_back({ComponentKind::kMlp, l});
  }
  before = count();
  read(Branch::kLogits, layers_ - 1, -1);
}

ComponentEdge ComponentGraph::edge(std::int64_t number) const {
  require(number >= 0 && number < edges_, "graph: there is no edge {}; there are {}", number,
          edges_);
  const auto after =
      std::upper_bound(inputs_.begin(), inputs_.end(), number,
                       [](std::int64_t n, const ComponentInput& input) { return n < input.first; });
  const auto index = after - inputs_.begin() - 1;
  return {number - inputs_[static_cast<std::size_t>(index)].first, index};
}

std::int64_t ComponentGraph::number(const ComponentEdge& edge) const {
  const auto count = static_cast<std::int64_t>(inputs_.size());
  require(edge.input >= 0 && edge.input < count, "graph: there is no input {}; there are {}",
          edge.input, count);
  const ComponentInput& input = inputs_[static_cast<std::size_t>(edge.input)];
  require(edge.node >= 0 && edge.node < input.before,
          "graph: no edge leads from node {} to {}, which reads the {} nodes before it", edge.node,
          input_text(edge.input), input.before);
  return input.first + edge.node;
}

std::int64_t ComponentGraph::head_node(std::int64_t layer, std::int64_t head) const {
  return 1 + layer * (heads_ + mlps_) + head;
}

std::int64_t ComponentGraph::input(Branch branch, std::int64_t layer, std::int64_t head) const {
  if (branch == Branch::kLogits) return logits();
  const std::int64_t a_layer = heads_ + 2 * key_heads_ + mlps_, begin = layer * a_layer;
  const std::int64_t count =
      branch == Branch::kQuery ? heads_ : (branch == Branch::kMlp ? mlps_ : key_heads_);
  if (branch == Branch::kMlp) head = 0;
  require(layer >= 0 && layer < layers_ && head >= 0 && head < count,
          "graph: there is no input of layer {} and head {}; there are {} layers of {}", layer,
          head, layers_, count);
  switch (branch) {
    case Branch::kQuery: return begin + head;
    case Branch::kKey: return begin + heads_ + head;
    case Branch::kValue: return begin + heads_ + key_heads_ + head;
    default: return begin + a_layer - 1;
  }
}

std::vector<std::int64_t> ComponentGraph::fed_by(std::int64_t index) const {
  const ComponentInput& input = inputs_[static_cast<std::size_t>(index)];
  switch (input.branch) {
    case Branch::kQuery: return {head_node(input.layer, input.head)};
    case Branch::kMlp: return {mlp_node(input.layer)};
    case Branch::kLogits: return {};
    default: break;
  }
  const std::int64_t share = heads_ / key_heads_;
  std::vector<std::int64_t> fed;
  for (std::int64_t h = input.head * share; h < (input.head + 1) * share; ++h)
    fed.push_back(head_node(input.layer, h));
  return fed;
}

std::vector<std::int64_t> ComponentGraph::inputs_of(std::int64_t index) const {
  const Component& node = nodes_[static_cast<std::size_t>(index)];
  if (node.kind == ComponentKind::kInput) return {};
  if (node.kind == ComponentKind::kMlp) return {input(Branch::kMlp, node.layer)};
  const std::int64_t key_head = node.head / (heads_ / key_heads_);
  return {input(Branch::kQuery, node.layer, node.head), input(Branch::kKey, node.layer, key_head),
          input(Branch::kValue, node.layer, key_head)};
}

std::string ComponentGraph::node_text(std::int64_t index) const {
  return name_of(nodes_.at(static_cast<std::size_t>(index)));
}

std::string ComponentGraph::input_text(std::int64_t index) const {
  const ComponentInput& input = inputs_.at(static_cast<std::size_t>(index));
  switch (input.branch) {
    case Branch::kQuery: return head_name({input.layer, input.head}) + " q";
    case Branch::kKey: return head_name({input.layer, input.head}) + " k";
    case Branch::kValue: return head_name({input.layer, input.head}) + " v";
    case Branch::kMlp: return mlp_name(input.layer);
    case Branch::kLogits: return name_of(Component{ComponentKind::kLogits});
  }
  return "unknown";
}

std::string ComponentGraph::edge_text(std::int64_t number) const {
  const ComponentEdge ends = edge(number);
  return fmt::format("{} -> {}", node_text(ends.node), input_text(ends.input));
}

std::vector<std::int64_t> ComponentGraph::connected(const std::vector<std::int64_t>& kept) const {
  // Edges of an input are neighbours and inputs come in the order of the computation, so one pass
  // over the sorted numbers goes forwards and one over their reverse goes backwards.
  std::vector<std::int64_t> sorted = kept;
  std::sort(sorted.begin(), sorted.end());
  std::vector<char> from_input(nodes_.size(), 0), to_logits(nodes_.size(), 0);
  from_input[0] = 1;
  for (const std::int64_t number : sorted) {
    const ComponentEdge ends = edge(number);
    if (from_input[static_cast<std::size_t>(ends.node)] == 0) continue;
    for (const std::int64_t node : fed_by(ends.input))
      from_input[static_cast<std::size_t>(node)] = 1;
  }
  const auto leads_on = [&](const ComponentEdge& ends) {
    if (ends.input == logits()) return true;
    const std::vector<std::int64_t> fed = fed_by(ends.input);
    return std::any_of(fed.begin(), fed.end(), [&](std::int64_t node) {
      return to_logits[static_cast<std::size_t>(node)] != 0;
    });
  };
  for (auto number = sorted.rbegin(); number != sorted.rend(); ++number) {
    const ComponentEdge ends = edge(*number);
    if (leads_on(ends)) to_logits[static_cast<std::size_t>(ends.node)] = 1;
  }
  std::vector<std::int64_t> result;
  for (const std::int64_t number : kept) {
    const ComponentEdge ends = edge(number);
    if (from_input[static_cast<std::size_t>(ends.node)] != 0 && leads_on(ends))
      result.push_back(number);
  }
  return result;
}

}  // namespace filigree
