// The graph as circuit-tracer's and Neuronpedia's viewers read it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "filigree/names.h"
#include "filigree/trace_study.h"
#include "filigree/version.h"

namespace filigree::study {
namespace {

constexpr std::size_t kLinkHeads = 5, kContributors = 10, kPairContributors = 20;

std::string node_id(const TracedModel& traced, const GraphNode& node, bool in_graph_target) {
  const std::int64_t L = traced.frozen.depth();
  switch (node.kind) {
    case NodeKind::kFeature:
      return fmt::format("{}_{}_{}", node.layer, node.feature, node.position);
    case NodeKind::kError: return fmt::format("{}_-1_{}", node.layer, node.position);
    case NodeKind::kEmbedding: return fmt::format("E_{}_{}", node.feature, node.position);
    case NodeKind::kTarget: break;
  }
  return in_graph_target && node.layer < L
             ? fmt::format("target_{}_{}_{}", node.layer, node.feature, node.position)
             : fmt::format("{}_{}_{}", L + 1, node.feature, node.position);
}

std::string target_label(const TracedModel& traced, const GraphTarget& target, std::int64_t node) {
  std::string name = node_name(traced, node);
  if (target.of_layer < 0 && target.against < 0)
    name = traced.shown[static_cast<TokenId>(target.node.feature)];
  // Viewers cut the label at "(p=" and fail where there is none.
  return fmt::format("Output \"{}\" (p={:.3f})", name,
                     target.of_layer < 0 ? target.probability : 1.0);
}

// What describes a node wherever it is named.
Json node_json(const TracedModel& traced, const GraphNode& node) {
  const bool feature = node.kind == NodeKind::kFeature;
  const std::string id = node_id(traced, node, false);
  const std::string token = traced.token_at(node.position);
  switch (node.kind) {
    case NodeKind::kFeature:
      return {{"node_id", id},
              {"feature", paired_number(node.layer, node.feature)},
              {"layer", std::to_string(node.layer)},
              {"ctx_idx", node.position},
              {"feature_type", "cross layer transcoder"},
              {"jsNodeId", fmt::format("{}_{}-0", node.layer, node.feature)},
              {"clerp", ""},
              {"activation", node.activation}};
    case NodeKind::kError:
      return {{"node_id", id},
              {"feature", -1},
              {"layer", std::to_string(node.layer)},
              {"ctx_idx", node.position},
              {"feature_type", "mlp reconstruction error"},
              {"jsNodeId", fmt::format("{}_error-{}", node.layer, node.position)},
              {"clerp", fmt::format("Err: mlp \"{}\"", token)},
              {"activation", Json()}};
    default:
      return {{"node_id", id},
              {"feature", feature ? node.feature : node.position},
              {"layer", "E"},
              {"ctx_idx", node.position},
              {"feature_type", "embedding"},
              {"jsNodeId", fmt::format("E_{}-{}", node.feature, node.position)},
              {"clerp", fmt::format("Emb: \"{}\"", token)},
              {"activation", Json()}};
  }
}

Json kept_node_json(const TracedModel& traced, std::int64_t i) {
  const GraphNode& node = traced.graph.nodes[static_cast<std::size_t>(i)];
  Json json;
  const std::int64_t first = traced.graph.first_target();
  if (i < first) {
    json = node_json(traced, node);
  } else {
    const GraphTarget& target = traced.targets[static_cast<std::size_t>(i - first)];
    json = {{"node_id", node_id(traced, node, true)},
            {"feature", node.feature},
            {"layer", std::to_string(traced.frozen.depth() + 1)},
            {"ctx_idx", node.position},
            {"feature_type", "logit"},
            {"jsNodeId", fmt::format("L_{}-{}", node.feature, node.position)},
            {"clerp", target_label(traced, target, i)},
            {"activation", Json()}};
  }
  json["influence"] =
      i < first ? Json(traced.pruned.cumulative[static_cast<std::size_t>(i)]) : Json();
  json["token_prob"] =
      i < first ? 0.0 : traced.targets[static_cast<std::size_t>(i - first)].probability;
  json["is_target_logit"] = i == first;
  json["run_idx"] = 0;
  json["reverse_ctx_idx"] = 0;
  return json;
}

Json link_heads(const EdgeLoading& loading) {
  Json list = Json::array();
  if (!loading.heads.defined()) return list;
  const std::vector<RankedHead> ranked = ranked_heads(loading.heads);
  for (std::size_t h = 0; h < std::min(kLinkHeads, ranked.size()); ++h)
    list.push_back(
        {{"layer", ranked[h].layer}, {"head", ranked[h].head}, {"loading", ranked[h].loading}});
  return list;
}

// The cell of attention between two positions that brings most to a node, over its edges.
std::optional<QkCell> strongest_cell(const TracedModel& traced, std::int64_t node) {
  std::map<std::array<std::int64_t, 4>, double> loadings;
  for (std::size_t e = 0; e < traced.pruned.edges.size(); ++e)
    if (traced.pruned.edges[e].target == node)
      for (const CellLoading& cell : traced.loadings[e].cells)
        if (cell.key < cell.query)
          loadings[{cell.layer, cell.head, cell.query, cell.key}] += std::abs(cell.loading);
  const auto most =
      std::max_element(loadings.begin(), loadings.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == loadings.end()) return std::nullopt;
  return QkCell{most->first[0], most->first[1], most->first[2], most->first[3]};
}

std::vector<std::int32_t> strongest_sources(const std::vector<float>& marginal, std::size_t count,
                                            std::int64_t sources) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(sources));
  std::iota(order.begin(), order.end(), 0);
  count = std::min(count, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](std::int32_t a, std::int32_t b) {
                      return std::abs(marginal[static_cast<std::size_t>(a)]) >
                             std::abs(marginal[static_cast<std::size_t>(b)]);
                    });
  order.resize(count);
  return order;
}

// Why the head that brings most to a node looks where it looks. Adds the sources it names.
Json qk_json(const TracedModel& traced, const QkCell& cell, std::set<std::int32_t>& named) {
  const std::int64_t count = traced.sources.count();
  const QkTerms terms = qk_terms(traced.frozen, traced.sources, cell);
  const QkMarginals marginals = qk_marginals(traced.frozen, traced.sources, {cell})[0];
  const auto id = [&](std::int32_t s) {
    named.insert(s);
    return node_id(traced, traced.sources.nodes[static_cast<std::size_t>(s)], false);
  };
  const auto list = [&](const std::vector<float>& marginal) {
    Json contributors = Json::array();
    for (const std::int32_t s : strongest_sources(marginal, kContributors, count))
      contributors.push_back({id(s), marginal[static_cast<std::size_t>(s)]});
    return contributors;
  };
  struct Term {
    std::int32_t query, key;
    double value;
  };
  std::vector<Term> pairs;  // among the strongest of both sides
  for (const std::int32_t q : strongest_sources(marginals.query, 40, count))
    for (const std::int32_t k : strongest_sources(marginals.key, 40, count))
      pairs.push_back({q, k, terms.term(q, k)});
  std::stable_sort(pairs.begin(), pairs.end(), [](const Term& a, const Term& b) {
    return std::abs(a.value) > std::abs(b.value);
  });
  Json pair_wise = Json::array();
  for (std::size_t p = 0; p < std::min(kPairContributors, pairs.size()); ++p)
    pair_wise.push_back({id(pairs[p].query), id(pairs[p].key), pairs[p].value});
  return {{"pair_wise_contributors", pair_wise},
          {"top_q_marginal_contributors", list(marginals.query)},
          {"top_k_marginal_contributors", list(marginals.key)},
          {"head", head_name({cell.layer, cell.head})},
          {"query", cell.query},
          {"key", cell.key},
          {"score", terms.score}};
}

std::vector<std::int64_t> nodes_by_influence(const TracedModel& traced) {
  std::vector<std::int64_t> nodes;
  for (std::int64_t i = traced.graph.first_target(); i < std::ssize(traced.graph.nodes); ++i)
    nodes.push_back(i);
  std::vector<std::int64_t> features;
  for (std::int64_t i = 0; i < traced.graph.features; ++i)
    if (traced.pruned.kept[static_cast<std::size_t>(i)]) features.push_back(i);
  std::stable_sort(features.begin(), features.end(), [&](std::int64_t a, std::int64_t b) {
    return traced.pruned.influence[static_cast<std::size_t>(a)] >
           traced.pruned.influence[static_cast<std::size_t>(b)];
  });
  nodes.insert(nodes.end(), features.begin(), features.end());
  return nodes;
}

Json metadata_json(const TracedModel& traced, const std::string& prompt,
                   const TraceRequest& request, const GraphFileOptions& options) {
  Json tokens = Json::array();
  for (std::int64_t p = 0; p < traced.frozen.positions; ++p) tokens.push_back(traced.token_at(p));
  return {{"slug", slug_of(options.slug.empty() ? traced.label + "-" + prompt : options.slug)},
          {"scan", options.scan.empty() ? slug_of(traced.features) : options.scan},
          {"transcoder_list", Json::array({traced.features})},
          {"prompt_tokens", tokens},
          {"prompt", shown_prompt(prompt)},
          {"node_threshold", request.node_share},
          {"schema_version", 1},
          {"info", {{"generator", {{"name", "Filigree"}, {"version", version_string()}}}}},
          {"generation_settings",
           {{"max_n_logits", static_cast<std::int64_t>(traced.targets.size())},
            {"desired_logit_prob", 0.95},
            {"max_feature_nodes", request.max_features}}},
          {"pruning_settings",
           {{"node_threshold", request.node_share}, {"edge_threshold", request.edge_share}}}};
}

}  // namespace

std::int64_t paired_number(std::int64_t layer, std::int64_t feature) {
  return (layer + feature) * (layer + feature + 1) / 2 + feature;
}

LayerFeature unpaired(std::int64_t number) {
  auto sum = static_cast<std::int64_t>((std::sqrt(8.0 * static_cast<double>(number) + 1) - 1) / 2);
  while (sum * (sum + 1) / 2 > number) --sum;
  while ((sum + 1) * (sum + 2) / 2 <= number) ++sum;
  const std::int64_t feature = number - sum * (sum + 1) / 2;
  return {sum - feature, feature};
}

std::string slug_of(const std::string& text) {
  std::string slug;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '.';
    if (plain)
      slug += c;
    else if (!slug.empty() && slug.back() != '-')
      slug += '-';
  }
  if (slug.size() > 60) slug.resize(60);
  while (!slug.empty() && slug.back() == '-') slug.pop_back();
  return slug.empty() ? "graph" : slug;
}

GraphFile graph_json(const TracedModel& traced, const std::string& prompt,
                     const TraceRequest& request, const GraphFileOptions& options) {
  std::vector<std::size_t> links(traced.pruned.edges.size());
  std::iota(links.begin(), links.end(), std::size_t{0});
  std::stable_sort(links.begin(), links.end(), [&](std::size_t a, std::size_t b) {
    return traced.pruned.edges[a].influence > traced.pruned.edges[b].influence;
  });
  GraphFile file;
  file.links_left_out = std::max<std::int64_t>(0, std::ssize(links) - options.max_links);
  links.resize(links.size() - static_cast<std::size_t>(file.links_left_out));

  std::map<std::int64_t, Json> traced_cells;
  std::set<std::int32_t> named;
  for (const std::int64_t node : nodes_by_influence(traced)) {
    if (std::ssize(traced_cells) >= options.qk_nodes) break;
    if (const std::optional<QkCell> cell = strongest_cell(traced, node))
      traced_cells[node] = qk_json(traced, *cell, named);
  }
  Json nodes = Json::array();
  for (const std::int64_t i : traced.pruned.nodes()) {
    Json node = kept_node_json(traced, i);
    const auto qk = traced_cells.find(i);
    if (qk != traced_cells.end()) node["qk_tracing_results"] = qk->second;
    nodes.push_back(std::move(node));
  }
  std::set<std::int32_t> in_graph;
  for (const std::int64_t i : traced.pruned.nodes())
    if (i < traced.graph.sources())
      in_graph.insert(traced.graph.source[static_cast<std::size_t>(i)]);
  Json beside = Json::object();
  for (const std::int32_t s : named)
    if (!in_graph.contains(s)) {
      const GraphNode& node = traced.sources.nodes[static_cast<std::size_t>(s)];
      beside[node_id(traced, node, false)] = node_json(traced, node);
    }
  Json list = Json::array();
  const auto id = [&](std::int64_t i) {
    return node_id(traced, traced.graph.nodes[static_cast<std::size_t>(i)], true);
  };
  for (const std::size_t e : links) {
    const EffectEdge& edge = traced.pruned.edges[e];
    list.push_back({{"source", id(edge.source)},
                    {"target", id(edge.target)},
                    {"weight", edge.effect},
                    {"head_loadings", link_heads(traced.loadings[e])}});
  }
  file.graph = {{"metadata", metadata_json(traced, prompt, request, options)},
                {"qParams",
                 {{"pinnedIds", Json::array()},
                  {"supernodes", Json::array()},
                  {"linkType", "both"},
                  {"clickedId", ""},
                  {"sg_pos", ""}}},
                {"nodes", nodes},
                {"links", list},
                {"qk_only_nodes", beside}};
  return file;
}

Json graph_metadata(const std::vector<Json>& graphs) {
  Json list = Json::array();
  for (const Json& graph : graphs) list.push_back(graph.at("metadata"));
  return {{"graphs", list}};
}

}  // namespace filigree::study
