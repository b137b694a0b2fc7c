#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>

#include "filigree/feature_study.h"
#include "filigree/features.h"
#include "filigree/names.h"
#include "filigree/trace_study.h"
#include "study/not_finite.h"

namespace filigree::study {
namespace {

constexpr std::int64_t kLoadedEdges = 2000;  // the strongest; each costs positions^2 products
constexpr std::size_t kPairs = 200;          // of positions, by influence
constexpr std::int64_t kExplainedHeads = 200;
constexpr double kShare = 0.8;

struct PlacedFeature {
  FeatureId feature = {};
  std::int64_t position = 0;
};

// "L3F17@5".
PlacedFeature placed_feature(const std::string& text) {
  const std::size_t at = text.find('@');
  const std::optional<FeatureId> feature = find_feature(std::string_view(text).substr(0, at));
  PlacedFeature placed;
  bool known = feature.has_value() && at != std::string::npos;
  if (known) {
    placed.feature = *feature;
    const char* const end = text.data() + text.size();
    const auto [next, error] = std::from_chars(text.data() + at + 1, end, placed.position);
    known = error == std::errc() && next == end;
  }
  if (!known)
    throw RequestError(
        fmt::format("the feature '{}' is not known; write layer, feature and position: L3F17@5",
                    printable(text)));
  return placed;
}

// The first token of a text, which may have more.
TokenId first_token(const LoadedModel& model, const std::string& text) {
  const std::vector<TokenId> ids = model.tokenizer().encode(text);
  if (ids.empty()) throw RequestError("the target has no tokens");
  return ids[0];
}

std::vector<GraphTarget> request_targets(const TraceRequest& request,
                                         const FeaturesOfModel& through,
                                         const FrozenModel& frozen) {
  if (!request.feature.empty()) {
    const PlacedFeature named = placed_feature(request.feature);
    return {feature_target(frozen, *through.features, named.feature.layer, named.position,
                           static_cast<std::int32_t>(named.feature.feature))};
  }
  if (request.target.empty()) return likeliest_logits(frozen);
  const TokenId token = first_token(*through.model, request.target);
  if (request.against.empty()) return {logit_target(frozen, token)};
  const TokenId other = first_token(*through.model, request.against);
  if (other == token)
    throw RequestError(fmt::format("'{}' and '{}' begin with the same token",
                                   printable(request.target), printable(request.against)));
  return {logit_difference(frozen, token, other)};
}

void check_request(const TraceRequest& request) {
  if (!request.feature.empty() && !request.target.empty())
    throw RequestError("a feature and a token cannot both be the target");
  if (!request.against.empty() && request.target.empty())
    throw RequestError("a token to compare with needs a target");
  if (request.key.has_value() != request.query.has_value())
    throw RequestError("a pair of tokens has a key and a query");
  if (request.key && *request.key >= *request.query)
    throw RequestError(
        fmt::format("key {} does not stand before query {}", *request.key, *request.query));
}

double largest_row_error(const AttributionGraph& graph) {
  double worst = 0.0, largest = 1e-30;
  for (std::int64_t r = 0; r < graph.rows(); ++r) {
    const auto i = static_cast<std::size_t>(r);
    const double sum = std::accumulate(graph.row(r), graph.row(r) + graph.sources(), 0.0) +
                       graph.bias[i] + graph.left_out[i];
    worst = std::max(worst, std::abs(sum - graph.value[i]));
    largest = std::max(largest, std::abs(graph.value[i]));
  }
  return worst / largest;
}

void require_finite(const TracedModel& traced, const FeaturesOfModel& through) {
  const std::string otherwise = what_the_transcoder_gave(through.name);
  const auto check = [&](const auto& numbers, const char* what) {
    study::require_finite(std::span(numbers), what, *through.model, traced.ids, otherwise);
  };
  check(traced.frozen.logits.values(), "the prediction");
  check(traced.graph.effects.values(), "the graph");
  check(traced.graph.value, "the graph");
}

// The edges of the pruned graph, the strongest first.
std::vector<std::size_t> edges_by_influence(const PrunedGraph& pruned) {
  std::vector<std::size_t> order(pruned.edges.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return pruned.edges[a].influence > pruned.edges[b].influence;
  });
  return order;
}

SourceReading pair_of(const TracedModel& traced, const EffectEdge& edge) {
  return {reading_of(traced, edge.target),
          traced.graph.source[static_cast<std::size_t>(edge.source)]};
}

void load_edges(TracedModel& traced, const TraceRequest& request) {
  std::vector<std::size_t> order = edges_by_influence(traced.pruned);
  order.resize(request.edge_loadings ? std::min<std::size_t>(order.size(), kLoadedEdges) : 0);
  std::vector<SourceReading> pairs;
  for (const std::size_t e : order) pairs.push_back(pair_of(traced, traced.pruned.edges[e]));
  std::vector<EdgeLoading> loaded = head_loadings(traced.frozen, traced.sources, pairs);
  traced.loadings.resize(traced.pruned.edges.size());
  for (std::size_t i = 0; i < order.size(); ++i) traced.loadings[order[i]] = std::move(loaded[i]);
}

struct PairEdges {
  std::vector<SourceReading> pairs;
  std::vector<double> effects;
  double influence = 0.0;
};

std::map<std::pair<std::int64_t, std::int64_t>, PairEdges> edges_by_positions(
    const TracedModel& traced) {
  std::map<std::pair<std::int64_t, std::int64_t>, PairEdges> found;
  for (const EffectEdge& edge : traced.pruned.edges) {
    const std::int64_t from = traced.graph.nodes[static_cast<std::size_t>(edge.source)].position;
    const std::int64_t to = traced.graph.nodes[static_cast<std::size_t>(edge.target)].position;
    if (from >= to) continue;
    PairEdges& edges = found[{from, to}];
    edges.pairs.push_back(pair_of(traced, edge));
    edges.effects.push_back(edge.effect);
    edges.influence += edge.influence;
  }
  return found;
}

CarriedPair carried_pair(const TracedModel& traced, const PairEdges& edges, std::int64_t from,
                         std::int64_t to) {
  CarriedPair pair;
  pair.loading = pair_loading(traced.frozen, traced.sources, edges.pairs, edges.effects, from, to);
  pair.influence = edges.influence;
  pair.heads = ranked_heads(pair.loading.heads);
  pair.heads_for_80 = fewest_for_share(pair.heads, kShare);
  return pair;
}

void load_pairs(TracedModel& traced, const TraceRequest& request) {
  const auto edges = edges_by_positions(traced);
  std::vector<std::pair<std::int64_t, std::int64_t>> order;
  for (const auto& [positions, found] : edges) order.push_back(positions);
  std::stable_sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
    return edges.at(a).influence > edges.at(b).influence;
  });
  if (order.size() > kPairs) order.resize(kPairs);
  std::vector<double> all(static_cast<std::size_t>(traced.frozen.depth() * traced.frozen.heads));
  for (const auto& [from, to] : order) {
    traced.pairs.push_back(carried_pair(traced, edges.at({from, to}), from, to));
    const Tensor& heads = traced.pairs.back().loading.heads;
    for (std::size_t h = 0; h < all.size(); ++h)
      all[h] += std::abs(static_cast<double>(heads.f32()[h]));
  }
  Tensor totals = Tensor::empty({traced.frozen.depth(), traced.frozen.heads});
  std::copy(all.begin(), all.end(), totals.mutable_f32());
  traced.heads_for_80 = fewest_for_share(ranked_heads(totals), kShare);

  if (request.key) {
    const auto found = edges.find({*request.key, *request.query});
    traced.pair = carried_pair(traced, found == edges.end() ? PairEdges{} : found->second,
                               *request.key, *request.query);
    return;
  }
  // What attention does not need rests on the first token.
  const auto chosen =
      std::find_if(traced.pairs.begin(), traced.pairs.end(), [&](const CarriedPair& pair) {
        return pair.loading.to == traced.targets[0].node.position && pair.loading.from > 0;
      });
  if (chosen != traced.pairs.end()) traced.pair = *chosen;
}

// Magnitudes of what each source brings to a score, through query and key, summing up to one.
std::vector<double> modulation_weights(const QkMarginals& marginals, bool relative,
                                       std::int64_t sources) {
  const std::vector<float>& query = relative ? marginals.relative_query : marginals.query;
  const std::vector<float>& key = relative ? marginals.relative_key : marginals.key;
  std::vector<double> weights(static_cast<std::size_t>(sources));
  double sum = 0.0;
  for (std::size_t s = 0; s < weights.size(); ++s)
    sum += weights[s] =
        std::abs(static_cast<double>(query[s])) + std::abs(static_cast<double>(key[s]));
  for (double& x : weights) x /= std::max(sum, 1e-30);
  return weights;
}

void explain_heads(TracedModel& traced) {
  if (!traced.pair || traced.pair->heads.empty()) return;
  const PairLoading& loading = traced.pair->loading;
  const std::int64_t count = std::min(traced.pair->heads_for_80, kExplainedHeads);
  double all = 0.0;
  for (const RankedHead& head : traced.pair->heads) all += std::abs(head.loading);
  std::vector<QkCell> cells;
  for (std::int64_t h = 0; h < count; ++h) {
    const RankedHead& head = traced.pair->heads[static_cast<std::size_t>(h)];
    cells.push_back({head.layer, head.head, loading.to, loading.from});
  }
  const std::vector<QkMarginals> marginals = qk_marginals(traced.frozen, traced.sources, cells);
  std::vector<double> together(static_cast<std::size_t>(traced.sources.count()));
  for (std::size_t h = 0; h < cells.size(); ++h) {
    const QkCell& cell = cells[h];
    CarryingHead head;
    head.cell = cell;
    head.loading = traced.pair->heads[h].loading;
    head.share = std::abs(head.loading) / std::max(all, 1e-30);
    const std::int64_t n = traced.frozen.positions;
    head.weight = static_cast<double>(
        traced.frozen.layer(cell.layer).weights.f32()[(cell.head * n + cell.query) * n + cell.key]);
    head.score = marginals[h].score;
    head.relative_score = marginals[h].relative_score;
    if (traced.gate_bias)
      head.gate_logit =
          capped_score(traced.frozen, head.score) +
          (*traced
                .gate_bias)[static_cast<std::size_t>(cell.layer * traced.frozen.heads + cell.head)];
    // What all keys share cancels in a softmax, but not in a gate.
    const std::vector<double> weights =
        modulation_weights(marginals[h], !traced.gated(), traced.sources.count());
    head.modulated_by = modulated_by(traced.sources, weights, kShare);
    for (std::size_t s = 0; s < together.size(); ++s) together[s] += head.share * weights[s];
    traced.carrying.push_back(std::move(head));
  }
  traced.modulated_by = modulated_by(traced.sources, together, kShare);
}

std::optional<std::vector<double>> gate_biases(const ModelConfig& config) {
  if (!config.gate.on()) return std::nullopt;
  std::vector<double> biases(config.gate.bias.begin(), config.gate.bias.end());
  if (biases.size() == 1)
    biases.assign(static_cast<std::size_t>(config.layers * config.heads), biases[0]);
  return biases;
}

}  // namespace

std::string TracedModel::token_at(std::int64_t position) const {
  return shown[ids[static_cast<std::size_t>(position)]];
}

std::vector<TokenId> trace_tokens(const TraceRequest& request, const LoadedModel& model) {
  std::vector<TokenId> ids = prompt_tokens(model, request.prompt, request.chat);
  if (!request.end_of_text) return ids;
  const std::optional<TokenId> end = model.tokenizer().eos_id();
  require(end.has_value(), "the tokenizer of '{}' has no end-of-text token",
          printable(model.name()));
  ids.insert(ids.begin(), *end);
  return ids;
}

const StreamReading* reading_of(const TracedModel& traced, std::int64_t node) {
  const AttributionGraph& graph = traced.graph;
  if (node < graph.features)
    return &traced.sources
                .readings[static_cast<std::size_t>(graph.source[static_cast<std::size_t>(node)])];
  return &traced.targets[static_cast<std::size_t>(node - graph.first_target())].reading;
}

std::string node_name(const TracedModel& traced, std::int64_t i) {
  const GraphNode& node = traced.graph.nodes[static_cast<std::size_t>(i)];
  switch (node.kind) {
    case NodeKind::kFeature: return feature_name({node.layer, node.feature});
    case NodeKind::kError: return fmt::format("L{} error", node.layer);
    case NodeKind::kEmbedding: return "embedding";
    case NodeKind::kTarget: break;
  }
  const GraphTarget& target =
      traced.targets[static_cast<std::size_t>(i - traced.graph.first_target())];
  if (target.of_layer >= 0) return feature_name({target.of_layer, node.feature});
  const std::string token = traced.shown[static_cast<TokenId>(node.feature)];
  if (target.against < 0) return fmt::format("'{}'", printable(token));
  return fmt::format("'{}' - '{}'", printable(token),
                     printable(traced.shown[static_cast<TokenId>(target.against)]));
}

TracedModel trace_ids(const TraceRequest& request, const FeaturesOfModel& through,
                      std::vector<TokenId> ids, const TargetsOf& targets, const Context& context) {
  const Model& model = through.model->model();
  TracedModel traced;
  traced.model = through.model->name(), traced.label = through.model->label();
  traced.features = through.name;
  traced.ids = std::move(ids);
  traced.gate_bias = gate_biases(model.config());
  const std::vector<std::int32_t> tokens(traced.ids.begin(), traced.ids.end());
  const FeatureHooks& hooks = through.features->hooks();
  traced.frozen = freeze_model(model, tokens, hooks.input, hooks.output);
  if (request.query)
    require(*request.query < traced.frozen.positions,
            "there is no token {}; the prompt's last is {}", *request.query,
            traced.frozen.positions - 1);
  traced.sources = graph_sources(traced.frozen, *through.features,
                                 {.without_first_position = !request.first_position});
  traced.targets = targets(traced.frozen);
  context.throw_if_stopped();
  traced.graph = attribution_graph(traced.frozen, traced.sources, traced.targets,
                                   {.max_features = request.max_features});
  require_finite(traced, through);
  context.throw_if_stopped();
  traced.pruned = prune_graph(traced.graph, {request.node_share, request.edge_share});
  traced.scores = graph_scores(traced.graph);
  traced.row_error = largest_row_error(traced.graph);

  const Tokenizer& tokenizer = through.model->tokenizer();
  for (const TokenId id : traced.ids) traced.shown.add(tokenizer, id);
  const GraphTarget top = likeliest_logits(traced.frozen, 1.0, 1)[0];
  traced.top_token = static_cast<TokenId>(top.node.feature);
  traced.top_probability = top.probability;
  traced.shown.add(tokenizer, traced.top_token);
  for (const GraphTarget& target : traced.targets) {
    if (target.of_layer >= 0) continue;
    traced.shown.add(tokenizer, static_cast<TokenId>(target.node.feature));
    if (target.against >= 0) traced.shown.add(tokenizer, static_cast<TokenId>(target.against));
  }
  load_edges(traced, request);
  context.throw_if_stopped();
  load_pairs(traced, request);
  explain_heads(traced);
  return traced;
}

TracedModel trace_model(const TraceRequest& request, const FeaturesOfModel& through,
                        const Context& context) {
  check_request(request);
  TracedModel traced = trace_ids(
      request, through, trace_tokens(request, *through.model),
      [&](const FrozenModel& frozen) { return request_targets(request, through, frozen); },
      context);
  if (!request.target.empty() && through.model->tokenizer().encode(request.target).size() > 1)
    traced.shortened = request.target;
  return traced;
}

std::vector<FeaturesOfModel> features_of_models(const std::vector<TraceFeatures>& asked,
                                                Models models) {
  if (!asked.empty() && asked.size() != models.size())
    throw RequestError(fmt::format("{} models and {} transcoders; give one for each model",
                                   models.size(), asked.size()));
  std::vector<FeaturesOfModel> opened;
  for (std::size_t m = 0; m < models.size(); ++m) {
    const TraceFeatures features = asked.empty() ? TraceFeatures() : asked[m];
    const std::filesystem::path path = features_of_model(features.folder, models[m].name());
    std::shared_ptr<const FeatureDictionary> dictionary = open_dictionary(path);
    // An index of other features shows before the work.
    if (!features.index.empty()) open_feature_index(features.index, models[m], *dictionary);
    opened.push_back({&models[m], std::move(dictionary), path.string(), features.index});
  }
  return opened;
}

TraceResult run(const TraceRequest& request, Models models, const Context& context) {
  check_request(request);
  return run(request, features_of_models(request.features, models), context);
}

TraceResult run(const TraceRequest& request, std::vector<FeaturesOfModel> through,
                const Context& context) {
  check_request(request);
  require(!through.empty(), "there is no model to trace");
  TraceResult result{request, {}, {}, std::move(through)};
  // All look at the pair of tokens that the last one, which the others stand beside, has chosen.
  TraceRequest same = request;
  TracedModel last = trace_model(request, result.through.back(), context);
  if (last.pair) same.key = last.pair->loading.from, same.query = last.pair->loading.to;
  for (std::size_t m = 0; m + 1 < result.through.size(); ++m)
    result.models.push_back(trace_model(same, result.through[m], context));
  result.models.push_back(std::move(last));
  if (request.validated > 0)
    for (std::size_t m = 0; m < result.through.size(); ++m)
      result.validations.push_back(
          validate_trace(result.models[m], result.through[m], request.validated, context));
  return result;
}

Knobs knobs_of(TraceRequest& request) {
  constexpr NumberRange kShare = {.min = 0.0, .max = 1.0, .above_min = true};
  constexpr CountRange kPosition = {.min = 0, .max = 1000000};
  Knobs knobs;
  knobs.section("Graph");
  knobs.count(
      {.name = "max-features", .what = "feature nodes, the most influential first, at most"},
      request.max_features, {.min = 1, .max = 1000000});
  knobs.number({.name = "node-share", .what = "share of the influence that kept nodes have"},
               request.node_share, kShare);
  knobs.number(
      {.name = "edge-share", .what = "share of the influence that kept edges between them have"},
      request.edge_share, kShare);
  knobs.flag({.name = "first-position",
              .what = "also take features of the first token, which transcoders are not trained "
                      "on"},
             request.first_position);
  knobs.count({.name = "validate",
               .what = "ablate this many features, of every rank of influence, and compare with "
                       "the graph"},
              request.validated, {.min = 0, .max = 10000});
  knobs.section("Pair of tokens");
  knobs.count({.name = "key",
               .what = "position that is read",
               .otherwise = "that of the pair that brings most to the prediction"},
              request.key, kPosition);
  knobs.count({.name = "query", .what = "position that reads", .otherwise = "likewise"},
              request.query, kPosition);
  return knobs;
}

}  // namespace filigree::study
