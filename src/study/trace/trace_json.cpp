// A traced prompt as JSON.
#include <fmt/format.h>

#include <cmath>

#include "filigree/names.h"
#include "filigree/trace_study.h"

namespace filigree::study {
namespace {

constexpr std::size_t kListedPairs = 20;
constexpr std::size_t kEdgeHeads = 5;  // of an edge

Json request_json(const TraceRequest& request) {
  const auto text = [](const std::string& value) { return value.empty() ? Json() : Json(value); };
  return {{"prompt", shown_prompt(request.prompt)}, {"target", text(request.target)},
          {"against", text(request.against)},       {"feature", text(request.feature)},
          {"end_of_text", request.end_of_text},     {"first_position", request.first_position},
          {"max_features", request.max_features},   {"node_share", request.node_share},
          {"edge_share", request.edge_share},       {"key", json_or_null(request.key)},
          {"query", json_or_null(request.query)}};
}

Json modulations_json(const std::vector<Modulation>& modulations, const TracedModel& traced) {
  Json list = Json::array();
  for (const Modulation& modulation : modulations) list.push_back(to_json(modulation, traced));
  return list;
}

Json targets_json(const TracedModel& traced) {
  Json list = Json::array();
  for (std::size_t t = 0; t < traced.targets.size(); ++t) {
    const GraphTarget& target = traced.targets[t];
    const auto row = static_cast<std::size_t>(traced.graph.features) + t;
    list.push_back(
        {{"name", node_name(traced, traced.graph.first_target() + static_cast<std::int64_t>(t))},
         {"position", target.node.position},
         {"value", target.value},
         {"bias", traced.graph.bias[row]},
         {"left_out", traced.graph.left_out[row]},
         {"probability", target.of_layer < 0 ? Json(target.probability) : Json()}});
  }
  return list;
}

Json nodes_json(const TracedModel& traced) {
  Json list = Json::array();
  for (const std::int64_t i : traced.pruned.nodes()) {
    const GraphNode& node = traced.graph.nodes[static_cast<std::size_t>(i)];
    const bool feature = node.kind == NodeKind::kFeature;
    list.push_back({{"node", i},
                    {"kind", name_of(node.kind)},
                    {"name", node_name(traced, i)},
                    {"layer", node.layer < 0 ? Json() : Json(node.layer)},
                    {"position", node.position},
                    {"feature", feature ? Json(node.feature) : Json()},
                    {"activation", feature ? Json(node.activation) : Json()},
                    {"influence", traced.pruned.influence[static_cast<std::size_t>(i)]}});
  }
  return list;
}

Json edges_json(const TracedModel& traced) {
  Json list = Json::array();
  for (std::size_t e = 0; e < traced.pruned.edges.size(); ++e) {
    const EffectEdge& edge = traced.pruned.edges[e];
    Json heads;
    if (traced.loadings[e].heads.defined()) {
      heads = Json::array();
      const std::vector<RankedHead> ranked = ranked_heads(traced.loadings[e].heads);
      for (std::size_t h = 0; h < std::min(kEdgeHeads, ranked.size()); ++h)
        heads.push_back({{"head", head_name({ranked[h].layer, ranked[h].head})},
                         {"loading", ranked[h].loading}});
    }
    list.push_back({{"source", edge.source},
                    {"target", edge.target},
                    {"effect", edge.effect},
                    {"influence", edge.influence},
                    {"heads", heads}});
  }
  return list;
}

Json pair_json(const CarriedPair& pair, const TracedModel& traced) {
  return {{"key", pair.loading.from},          {"key_token", traced.token_at(pair.loading.from)},
          {"query", pair.loading.to},          {"query_token", traced.token_at(pair.loading.to)},
          {"edges", pair.loading.edges},       {"influence", pair.influence},
          {"single_hop", pair.loading.single}, {"several_hops", pair.loading.several},
          {"heads_for_80", pair.heads_for_80}};
}

Json carrying_json(const TracedModel& traced) {
  Json list = Json::array();
  for (const CarryingHead& head : traced.carrying)
    list.push_back({{"head", head_name({head.cell.layer, head.cell.head})},
                    {"loading", head.loading},
                    {"share", head.share},
                    {"weight", head.weight},
                    {"score", head.score},
                    {"relative_score", head.relative_score},
                    {"gate_logit", json_or_null(head.gate_logit)},
                    {"modulated_by", modulations_json(head.modulated_by, traced)}});
  return list;
}

Json model_json(const TracedModel& traced) {
  Json tokens = Json::array();
  for (std::int64_t p = 0; p < traced.frozen.positions; ++p) tokens.push_back(traced.token_at(p));
  Json pairs = Json::array();
  for (std::size_t p = 0; p < std::min(kListedPairs, traced.pairs.size()); ++p)
    pairs.push_back(pair_json(traced.pairs[p], traced));
  return {{"model", traced.model},
          {"label", traced.label},
          {"features", traced.features},
          {"tokens", tokens},
          {"likeliest",
           {{"token", traced.shown[traced.top_token]}, {"probability", traced.top_probability}}},
          {"targets", targets_json(traced)},
          {"active_features", traced.graph.active_features},
          {"feature_nodes", traced.graph.features},
          {"row_error", traced.row_error},
          {"replacement_score", traced.scores.replacement},
          {"completeness_score", traced.scores.completeness},
          {"pruned_replacement_score", traced.pruned.scores.replacement},
          {"pruned_completeness_score", traced.pruned.scores.completeness},
          {"nodes", nodes_json(traced)},
          {"edges", edges_json(traced)},
          {"heads_for_80", traced.heads_for_80},
          {"pairs", pairs},
          {"pair", traced.pair ? pair_json(*traced.pair, traced) : Json()},
          {"heads", carrying_json(traced)},
          {"modulated_by", modulations_json(traced.modulated_by, traced)}};
}

}  // namespace

Json to_json(const Modulation& modulation, const TracedModel& traced) {
  return {{"position", modulation.position},
          {"token", traced.token_at(modulation.position)},
          {"first_layer", modulation.first_layer},
          {"last_layer", modulation.last_layer},
          {"share", modulation.share},
          {"sources", modulation.sources}};
}

Json to_json(const TraceResult& result) {
  Json models = Json::array();
  for (const TracedModel& traced : result.models) models.push_back(model_json(traced));
  Json validations = Json::array();
  for (std::size_t m = 0; m < result.validations.size(); ++m)
    validations.push_back(to_json(result.validations[m], result.models[m]));
  return {{"request", request_json(result.request)},
          {"models", models},
          {"validation", validations.empty() ? Json() : validations}};
}

}  // namespace filigree::study
