// Made-up inputs for the figures of circuits and lenses; figure_samples.h lists them.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "filigree/figures.h"
#include "filigree/random.h"

namespace filigree::figure::samples {

inline std::vector<std::string> tokens_of_a_prompt() {
  return {"When",   " Mary", " and",  " John", " went", " to",    " the",
          " store", ",",     " John", " gave", " a",    " drink", " to"};
}

inline EffectCurve effect_curve(const std::string& name, double parts, double half, double size) {
  EffectCurve curve = {.name = name, .size = size};
  Random random(29, static_cast<std::uint64_t>(half));
  double kept = 0;
  while (kept <= parts) {
    const double share = 1 - std::exp(-kept / half);
    curve.kept.push_back(kept);
    curve.effect.push_back(share + 0.012 * random.normal() * (1 - share));
    curve.error.push_back(0.045 * (1 - share) + 0.008);
    if (kept < size && size <= std::max(kept + 1, std::round(kept * 1.12)))
      kept = size;
    else
      kept = std::max(kept + 1, std::round(kept * 1.12));
  }
  return curve;
}

// Heads alone, with edges, or with attention edges too.
inline CircuitCurves effect_curves(int kinds) {
  CircuitCurves input = {
      .title = "Indirect object identification",
      .charts = {{.unit = "heads",
                  .curves = {effect_curve("GPT-2", 144, 26, 61),
                             effect_curve("Sparse GPT-2", 144, 3.8, 9)}}},
      .caption =
          "Parts kept in order of importance; all others take the values of the corrupted "
          "prompt. Bands: one standard error over 64 prompts."};
  if (kinds > 1)
    input.charts.push_back({.unit = "edges",
                            .curves = {effect_curve("GPT-2", 32491, 1750, 4110),
                                       effect_curve("Sparse GPT-2", 32491, 41, 96)}});
  if (kinds > 2)
    input.charts.push_back({.unit = "attention edges",
                            .curves = {effect_curve("GPT-2", 15120, 190, 440),
                                       effect_curve("Sparse GPT-2", 900, 160, 371)}});
  return input;
}

// A graph of some `edges` edges, most of them between neighbouring layers.
inline CircuitGraph sample_graph(int layers, int heads, int edges, std::uint64_t seed) {
  Random random(seed, 5);
  CircuitGraph graph;
  const auto node = [&](const Component& wanted) {
    const auto found = std::find(graph.nodes.begin(), graph.nodes.end(), wanted);
    if (found == graph.nodes.end()) graph.nodes.push_back(wanted);
    return static_cast<std::size_t>(std::find(graph.nodes.begin(), graph.nodes.end(), wanted) -
                                    graph.nodes.begin());
  };
  const auto pick = [&](std::int64_t below) {  // depth below: -1 is the input
    const std::int64_t depth = below - 1 - static_cast<std::int64_t>(random.below(6));
    if (depth < 0) return Component{};
    if (depth % 2 == 1) return Component{ComponentKind::kMlp, depth / 2, 0};
    return Component{ComponentKind::kHead, depth / 2,
                     static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(heads)))};
  };
  // Backwards from the logits, so that every node leads somewhere.
  std::vector<Component> open = {{ComponentKind::kLogits, 0, 0}};
  node(open[0]);
  for (std::size_t next = 0; static_cast<int>(graph.edges.size()) < edges; ++next) {
    const Component to = open[next % open.size()];
    if (to.kind == ComponentKind::kInput) continue;
    const bool logits = to.kind == ComponentKind::kLogits;
    const Component from = pick(logits ? 2 * layers : depth_of(to));
    GraphEdge edge = {node(from), node(to), GraphInput::kNone, 0};
    if (to.kind == ComponentKind::kHead) edge.input = static_cast<GraphInput>(1 + random.below(3));
    edge.score = std::exp(random.normal() * 0.9 - 2) * (random.below(5) == 0 ? -1 : 1);
    const bool known =
        std::any_of(graph.edges.begin(), graph.edges.end(), [&](const GraphEdge& other) {
          return other.from == edge.from && other.to == edge.to && other.input == edge.input;
        });
    if (known) continue;
    graph.edges.push_back(edge);
    if (std::find(open.begin(), open.end(), from) == open.end()) open.push_back(from);
  }
  return graph;
}

inline CircuitDrawing drawing() {
  return {.title = "Circuit of indirect object identification",
          .panels = {{"GPT-2: 70 edges", sample_graph(12, 12, 70, 3)},
                     {"Sparse GPT-2: 18 edges", sample_graph(12, 12, 18, 8)}},
          .caption = "Edges that explain 90 % of the logit difference."};
}

inline CircuitDrawing one_drawing(int edges) {
  return {.title = fmt::format("Circuit of {} edges", edges),
          .panels = {{"", sample_graph(12, 12, edges, 21)}}};
}

// Edges of a model of 12 x 12 on the prompt: `scattered` ones anywhere, and the few that do the
// work.
inline TokenPanel token_panel(const std::string& title, int scattered, std::uint64_t seed) {
  TokenPanel panel = {.title = title, .answer = " Mary", .note = "logit difference 4.2"};
  const auto add = [&](HeadId head, std::size_t query, std::size_t key, double score) {
    panel.edges.push_back({head, query, key, score, std::min(1.0, std::abs(score) / 5)});
  };
  add({0, 1}, 9, 3, 1.4), add({0, 10}, 9, 3, 0.9), add({2, 2}, 4, 3, 0.8);
  add({5, 5}, 9, 4, 1.1), add({7, 3}, 13, 9, 2.2), add({8, 6}, 13, 9, 1.6);
  add({9, 6}, 13, 1, 3.4), add({9, 9}, 13, 1, 4.1), add({10, 0}, 13, 1, 2.0);
  add({10, 7}, 13, 3, -1.8), add({6, 2}, 9, 9, 0.3);
  Random random(seed, 9);
  for (int i = 0; i < scattered; ++i) {
    const auto query = static_cast<std::size_t>(random.below(14));
    add({static_cast<std::int64_t>(random.below(12)), static_cast<std::int64_t>(random.below(12))},
        query, static_cast<std::size_t>(random.below(query + 1)),
        0.2 * std::exp(random.normal()) * (random.below(4) == 0 ? -1 : 1));
  }
  panel.mlps = {{0, 3, 2.4}, {0, 9, 1.2}, {1, 1, 0.3}, {9, 13, -0.8}, {10, 13, 1.5}};
  return panel;
}

// One token's arcs in two models, and a text that grew.
inline TokenArcs arcs() {
  const std::vector<std::string> tokens = {"When", " Mary", " and",  " John", " went", " home",
                                           ",",    " John", " gave", " it",   " to",   " Mary"};
  ArcSentence chosen = {.tokens = tokens, .above = {.name = "GPT-2"}, .chosen = 7};
  for (std::size_t key = 0; key <= 7; ++key)
    chosen.above.arcs.push_back({7, key, key == 3 ? 0.8 : 0.15});
  for (std::size_t query = 8; query < tokens.size(); ++query)
    chosen.above.arcs.push_back({query, 7, 0.3});
  chosen.below = ArcSide{"Sparse GPT-2", 1, {{7, 3, 1.0}, {10, 7, 0.6}}};
  ArcSentence grown = {.tokens = tokens, .above = {.name = "GPT-2"}, .fresh = 10};
  grown.above.arcs = {{10, 9, 0.5}, {11, 1, 0.9}, {11, 11, 0.2}};
  return {.title = "Where \u201c John\u201d comes from and goes to",
          .sentences = {chosen, grown},
          .caption = "Thick arcs carry much; dashed ones take it on."};
}

inline TokenCircuit tokens_circuit(int dense, int sparse) {
  TokenCircuit input = {
      .title = "Attention edges of indirect object identification",
      .tokens = tokens_of_a_prompt(),
      .roles = std::vector<std::string>(14),
      .layers = 12,
      .panels = {token_panel(fmt::format("GPT-2: {} edges", dense + 11), dense, 3)},
      .score_label = "drop of logit difference",
      .caption = "Edges that explain 90 % of the effect over 64 prompts."};
  input.roles[1] = "IO", input.roles[3] = "S1", input.roles[9] = "S2", input.roles[13] = "END";
  if (sparse >= 0)
    input.panels.push_back(
        token_panel(fmt::format("Sparse GPT-2: {} edges", sparse + 11), sparse, 4));
  return input;
}

inline MapAxis numbered_axis(const std::string& name, const std::string& prefix, int count) {
  MapAxis axis = {.name = name};
  for (int i = 0; i < count; ++i) axis.labels.push_back(fmt::format("{}{}", prefix, i));
  return axis;
}

// Effects by layer and head with a column for MLPs, as of patches and of direct attribution.
inline LabelledMaps head_map() {
  LabelledMaps input = {.title = "Direct logit attribution",
                        .scale_label = "logit difference",
                        .caption =
                            "Contribution of every head and MLP at the last position; mean "
                            "over 64 prompts."};
  for (const bool sparse : {false, true}) {
    Random random(17, sparse ? 1 : 0);
    MapPanel panel = {.title = sparse ? "Sparse GPT-2" : "GPT-2",
                      .rows = numbered_axis("layer", "", 12),
                      .columns = numbered_axis("head", "", 12)};
    panel.columns.labels.emplace_back("MLP");
    panel.columns.groups = {{"heads", 12}, {"MLP", 1}};
    panel.columns.gaps = true;
    for (int layer = 0; layer < 12; ++layer)
      for (int head = 0; head < 13; ++head) {
        const double strength = random.normal() * std::exp(0.25 * (layer - 11));
        const bool quiet = sparse && random.below(5) != 0;
        panel.values.push_back(quiet ? 0.0f
                                     : static_cast<float>(strength * std::abs(random.normal())));
      }
    input.panels.push_back(std::move(panel));
  }
  return input;
}

inline LabelledMaps position_map() {
  MapPanel panel = {
      .title = "GPT-2",
      .rows = numbered_axis("layer", "", 12),
      .columns = {.name = "position", .labels = tokens_of_a_prompt(), .tokens = true}};
  for (int layer = 0; layer < 12; ++layer)
    for (int position = 0; position < 14; ++position) {
      const double early = position == 9 ? 1 / (1 + std::exp(layer - 6.5)) : 0;
      const double late = position == 13 ? 1 / (1 + std::exp(6.5 - layer)) : 0;
      panel.values.push_back(static_cast<float>(early + late - 0.02 * ((layer * position) % 3)));
    }
  return {.title = "Patching the residual stream",
          .panels = {panel},
          .end = 1,
          .scale_label = "normalised effect"};
}

inline LabelledMaps lens_map() {
  const std::vector<std::string> words = {" the", ",",     " Mary", " a",  " store",
                                          " and", " John", "\n",    " to", " extraordinarily"};
  MapPanel panel = {.rows = {.name = "after layer", .labels = {}},
                    .columns = {.name = "prompt", .labels = tokens_of_a_prompt(), .tokens = true}};
  for (int layer = 11; layer >= 0; --layer) {
    panel.rows.labels.push_back(fmt::format("{}", layer));
    for (int position = 0; position < 14; ++position) {
      panel.values.push_back(
          static_cast<float>((layer + 1) / 12.0 * (0.2 + 0.8 * ((position * 5 + 3) % 7) / 6.0)));
      panel.words.push_back(
          words[static_cast<std::size_t>(layer * 3 + position * 7) % words.size()]);
    }
  }
  return {.title = "Logit lens",
          .panels = {panel},
          .kind = ScaleKind::kMagnitude,
          .end = 1,
          .scale_label = "probability of the likeliest token"};
}

inline LabelledMaps composition_map(int layers, int heads) {
  LabelledMaps input = {.title = "Composition of heads", .scale_label = "composition score"};
  for (const char* kind : {"Q", "K", "V"}) {
    Random random(31, static_cast<std::uint64_t>(kind[0]));
    MapAxis earlier = {.name = "earlier head"}, later = {.name = "later head"};
    for (int layer = 0; layer < layers; ++layer) {
      for (MapAxis* axis : {&earlier, &later}) {
        axis->groups.push_back({layer_name(layer), static_cast<std::size_t>(heads)});
        for (int head = 0; head < heads; ++head) axis->labels.push_back(head_name({layer, head}));
      }
    }
    MapPanel panel = {
        .title = fmt::format("{}-composition", kind), .rows = earlier, .columns = later};
    for (int a = 0; a < layers * heads; ++a)
      for (int b = 0; b < layers * heads; ++b)
        panel.values.push_back(
            a / heads < b / heads
                ? static_cast<float>(0.1 * std::abs(random.normal()) * std::abs(random.normal()))
                : std::numeric_limits<float>::quiet_NaN());
    input.panels.push_back(std::move(panel));
  }
  input.kind = ScaleKind::kMagnitude;
  return input;
}

}  // namespace filigree::figure::samples
