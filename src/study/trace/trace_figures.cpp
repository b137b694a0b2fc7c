#include <fmt/format.h>

#include <algorithm>

#include "filigree/error.h"
#include "filigree/names.h"
#include "filigree/trace_study.h"

namespace filigree::study {
namespace {

std::vector<std::string> shown_tokens(const TracedModel& traced) {
  std::vector<std::string> tokens;
  for (std::int64_t p = 0; p < traced.frozen.positions; ++p) tokens.push_back(traced.token_at(p));
  return tokens;
}

// The prediction that is explained: the target where it is a token, else the likeliest.
TokenId answer_of(const TracedModel& traced) {
  const GraphTarget& first = traced.targets[0];
  return first.of_layer < 0 ? static_cast<TokenId>(first.node.feature) : traced.top_token;
}

double probability_of(const TracedModel& traced) {
  const GraphTarget& first = traced.targets[0];
  return first.of_layer < 0 ? first.probability : traced.top_probability;
}

std::string carried_note(const TracedModel& traced) {
  const PairLoading& loading = traced.pair->loading;
  const double whole = loading.single + loading.several;
  return fmt::format("{}: {} over one hop", printable(traced.label),
                     percent(whole == 0.0 ? 0.0 : std::clamp(loading.single / whole, 0.0, 1.0)));
}

figure::FeatureGraphPanel graph_panel(const TracedModel& traced, std::size_t most) {
  std::vector<std::int64_t> nodes = traced.pruned.nodes();
  const std::int64_t first_target = traced.graph.first_target();
  std::stable_sort(nodes.begin(), nodes.end(), [&](std::int64_t a, std::int64_t b) {
    const bool target_a = a >= first_target, target_b = b >= first_target;
    if (target_a != target_b) return target_a;
    return traced.pruned.influence[static_cast<std::size_t>(a)] >
           traced.pruned.influence[static_cast<std::size_t>(b)];
  });
  const std::size_t all = nodes.size();
  if (nodes.size() > most) nodes.resize(most);
  std::sort(nodes.begin(), nodes.end());
  figure::FeatureGraphPanel panel;
  std::vector<std::int64_t> place(traced.graph.nodes.size(), -1);
  for (const std::int64_t i : nodes) {
    const GraphNode& node = traced.graph.nodes[static_cast<std::size_t>(i)];
    figure::FeatureNode drawn;
    drawn.position = static_cast<std::size_t>(node.position);
    drawn.influence = traced.pruned.influence[static_cast<std::size_t>(i)];
    switch (node.kind) {
      case NodeKind::kFeature:
      case NodeKind::kError: {
        const bool error = node.kind == NodeKind::kError;
        drawn.kind = error ? figure::FeatureNodeKind::kError : figure::FeatureNodeKind::kFeature;
        drawn.layer = static_cast<std::size_t>(node.layer);
        drawn.label = error ? "error" : std::to_string(node.feature);
        break;
      }
      case NodeKind::kEmbedding:
        drawn.kind = figure::FeatureNodeKind::kEmbedding;
        drawn.label = "emb";
        break;
      case NodeKind::kTarget:
        drawn.kind = figure::FeatureNodeKind::kOutput;
        drawn.label = node_name(traced, i);
        break;
    }
    place[static_cast<std::size_t>(i)] = static_cast<std::int64_t>(panel.nodes.size());
    panel.nodes.push_back(std::move(drawn));
  }
  for (std::size_t e = 0; e < traced.pruned.edges.size(); ++e) {
    const EffectEdge& edge = traced.pruned.edges[e];
    const std::int64_t from = place[static_cast<std::size_t>(edge.source)];
    const std::int64_t to = place[static_cast<std::size_t>(edge.target)];
    if (from < 0 || to < 0) continue;
    figure::FeatureEdge drawn = {static_cast<std::size_t>(from), static_cast<std::size_t>(to),
                                 edge.influence, edge.effect < 0.0, ""};
    const bool between = panel.nodes[drawn.from].position != panel.nodes[drawn.to].position;
    if (between && traced.loadings[e].heads.defined()) {
      const std::vector<RankedHead> heads = ranked_heads(traced.loadings[e].heads);
      if (!heads.empty()) drawn.heads = head_name({heads[0].layer, heads[0].head});
    }
    panel.edges.push_back(std::move(drawn));
  }
  panel.title = fmt::format("{}: replacement {:.2f}, completeness {:.2f}", traced.label,
                            traced.scores.replacement, traced.scores.completeness);
  if (all > most) panel.title += fmt::format(", the {} most influential of {} nodes", most, all);
  return panel;
}

}  // namespace

figure::CarriedPairFigure heads_figure(const TraceResult& result) {
  figure::CarriedPairFigure figure;
  std::vector<std::string> notes;
  for (const TracedModel& traced : result.models) {
    require(traced.pair.has_value(), "'{}' carries nothing from token to token of this prompt",
            printable(traced.label));
    const std::int64_t n = traced.frozen.positions;
    const PairLoading& loading = traced.pair->loading;
    if (figure.panels.empty()) {
      figure.tokens = shown_tokens(traced);
      figure.key = static_cast<std::size_t>(loading.from);
      figure.query = static_cast<std::size_t>(loading.to);
    }
    require(figure.tokens.size() == traced.ids.size(),
            "the models take the prompt as other tokens: {} and {}", figure.tokens.size(),
            traced.ids.size());
    figure::CarriedPanel panel;
    panel.title = fmt::format("{}: {} head{} carr{} 80 %", traced.label, traced.pair->heads_for_80,
                              traced.pair->heads_for_80 == 1 ? "" : "s",
                              traced.pair->heads_for_80 == 1 ? "ies" : "y");
    for (const CarryingHead& head : traced.carrying) {
      const float* map =
          traced.frozen.layer(head.cell.layer).weights.f32() + head.cell.head * n * n;
      panel.maps.push_back(
          {{head.cell.layer, head.cell.head}, std::vector<float>(map, map + n * n), head.share});
    }
    for (const Modulation& token : traced.modulated_by)
      panel.modulated_by.push_back({static_cast<std::size_t>(token.position), token.first_layer,
                                    token.last_layer, token.share});
    panel.answer = traced.shown[answer_of(traced)];
    panel.note = percent(probability_of(traced));
    figure.panels.push_back(std::move(panel));
    notes.push_back(carried_note(traced));
  }
  const TracedModel& first = result.models[0];
  figure.title = fmt::format("What carries key {} to query {}", figure.key, figure.query);
  figure.caption = fmt::format(
      "Heads by what they carry from token {} to token {} in the attribution graph of '{}', the "
      "fewest that reach 80 %, and the sources that their scores come from. {}.",
      figure.key, figure.query, printable(first.shown[answer_of(first)]), join(notes, "; "));
  return figure;
}

figure::FeatureGraphFigure graph_figure(const TraceResult& result, std::size_t most) {
  figure::FeatureGraphFigure figure;
  for (const TracedModel& traced : result.models) {
    if (figure.panels.empty()) {
      figure.tokens = shown_tokens(traced);
      figure.layers = static_cast<std::size_t>(traced.frozen.depth());
    }
    require(figure.tokens.size() == traced.ids.size() &&
                figure.layers == static_cast<std::size_t>(traced.frozen.depth()),
            "models of other tokens or layers cannot share a figure");
    figure.panels.push_back(graph_panel(traced, most));
  }
  const TracedModel& first = result.models[0];
  figure.title = fmt::format("Where {} comes from", node_name(first, first.graph.first_target()));
  figure.caption = fmt::format(
      "The attribution graph, pruned to {} of the influence of nodes and {} of edges. Darker "
      "features have more influence; dashed boxes are what the features miss.",
      percent(result.request.node_share), percent(result.request.edge_share));
  return figure;
}

void save_trace_figure(const TraceResult& result, TraceDrawing drawing,
                       const std::filesystem::path& file, const FigureStyle& style) {
  if (drawing == TraceDrawing::kHeads) {
    const figure::CarriedPairFigure figure = heads_figure(result);
    return save_figure(&figure, file, style);
  }
  const figure::FeatureGraphFigure figure = graph_figure(result);
  save_figure(&figure, file, style);
}

}  // namespace filigree::study
