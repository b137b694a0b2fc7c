#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "filigree/error.h"
#include "filigree/lens_study.h"
#include "filigree/names.h"
#include "filigree/study.h"
#include "study/not_finite.h"

namespace filigree::study {
namespace {

// Of a text that mean inputs are taken over.
constexpr std::int64_t kTextTokens = 32768;

// The pairs of one head, both circuits under a report each.
PairsOfHead pairs_of(const LoadedModel& model, const TokenRows& inputs,
                     const HeadMatrices& matrices, const HeadId& head, PairOptions options,
                     const Context& context) {
  PairsOfHead pairs = {head, {}, {}};
  for (const bool ov : {true, false}) {
    std::unique_ptr<WorkReport> report;
    options.progress = [&](std::int64_t done, std::int64_t total) {
      context.throw_if_stopped();
      if (!report)
        report = context.begin(
            {fmt::format("{} {}", head_name(head), ov ? "OV" : "QK"), "tokens", total});
      report->update(done);
      if (done == total) report->finish();
    };
    (ov ? pairs.ov : pairs.qk) = ov ? top_ov_pairs(model.model(), inputs, matrices, options)
                                    : top_qk_pairs(model.model(), inputs, matrices, options);
  }
  return pairs;
}

void require_finite(const HeadCircuits& found, const LoadedModel& model) {
  bool finite = true;
  for (const HeadCircuitScores& score : found.scores)
    finite = finite && std::isfinite(score.copying) && std::isfinite(score.matching);
  for (const std::vector<float>& scores : found.composition.scores)
    for (const float score : scores) finite = finite && std::isfinite(score);
  if (finite) return;
  const std::string tensor = tensor_not_finite(model.model());
  fail("what the heads of '{}' do is not finite: {}", printable(model.label()),
       tensor.empty() ? "products of its weights are too large" : tensor);
}

// [earlier][later] of the listed heads; null where the layer is not later.
Json matrix_json(const HeadCircuits& found, Composition kind) {
  Json rows = Json::array();
  for (const HeadId& a : found.listed) {
    Json row = Json::array();
    for (const HeadId& b : found.listed)
      row.push_back(a.layer < b.layer ? Json(found.composed(kind, a, b)) : Json());
    rows.push_back(std::move(row));
  }
  return rows;
}

Json composition_json(const HeadCircuits& found, Composition kind, Matrices matrices) {
  Json list = Json::array();
  for (const ComposedPair& pair : found.strongest(kind))
    list.push_back({{"earlier", head_name(pair.earlier)},
                    {"later", head_name(pair.later)},
                    {"score", pair.score}});
  return {{"strongest", list},
          {"scores", matrices == Matrices::kEvery ? matrix_json(found, kind) : Json()}};
}

// Those of some heads that share a layer, one group a layer.
void add_heads(const std::vector<HeadId>& heads, figure::MapAxis& axis) {
  for (const HeadId& head : heads) {
    const std::string layer = layer_name(head.layer);
    if (axis.groups.empty() || axis.groups.back().label != layer) axis.groups.push_back({layer, 0});
    ++axis.groups.back().count;
    axis.labels.push_back(head_name(head));
  }
}

figure::MapPanel panel_of(const HeadCircuits& found, Composition kind, std::string title) {
  figure::MapPanel panel;
  panel.title = std::move(title);
  panel.rows.name = "earlier head", panel.columns.name = "later head";
  // The last layer writes to no head and the first reads from none.
  std::vector<HeadId> earlier, later;
  for (const HeadId& head : found.listed) {
    if (head.layer < found.listed.back().layer) earlier.push_back(head);
    if (head.layer > found.listed.front().layer) later.push_back(head);
  }
  add_heads(earlier, panel.rows);
  add_heads(later, panel.columns);
  for (const HeadId& a : earlier)
    for (const HeadId& b : later)
      panel.values.push_back(a.layer < b.layer ? static_cast<float>(found.composed(kind, a, b))
                                               : std::numeric_limits<float>::quiet_NaN());
  return panel;
}

TokenInputs inputs_for(const HeadCircuitsRequest& request, const std::vector<HeadId>& heads,
                       const LoadedModel& model, const Context& context, HeadCircuits& found) {
  if (request.input != TokenInput::kText) return {model.model(), request.input};
  const SampleText sample = sample_text(model, request.text, kTextTokens, context.seed);
  found.text = sample.source;
  std::vector<std::int64_t> layers;
  for (const HeadId& head : heads) layers.push_back(head.layer);
  std::sort(layers.begin(), layers.end());
  layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
  const std::unique_ptr<WorkReport> report =
      context.begin({fmt::format("{}: mean inputs", model.label()), "tokens",
                     static_cast<std::int64_t>(sample.ids.size())});
  TokenInputs inputs = TokenInputs::of_texts(model.model(), std::span(&sample.ids, 1), layers,
                                             [&](std::int64_t done) {
                                               context.throw_if_stopped();
                                               report->update(done);
                                             });
  report->finish();
  return inputs;
}

// Throws RequestError for a token that the text does not have.
void require_inputs(const TokenRows& inputs, const std::vector<TokenId>& tokens,
                    const HeadCircuits& found) {
  for (std::size_t t = 0; t < tokens.size(); ++t)
    if (inputs.row_of(tokens[t]) < 0)
      throw RequestError(
          fmt::format("the token '{}' does not occur in {}, so there is no mean input for it; take "
                      "another text or another kind of input",
                      printable(found.request.from[t]), found.text));
}

}  // namespace

double HeadCircuits::composed(Composition kind, const HeadId& earlier, const HeadId& later) const {
  return composition.at(kind, earlier.layer * heads + earlier.head,
                        later.layer * heads + later.head) -
         (request.less_random ? composition.random : 0);
}

std::vector<ComposedPair> HeadCircuits::strongest(Composition kind) const {
  std::vector<ComposedPair> composed_pairs;
  for (const HeadId& a : listed)
    for (const HeadId& b : listed)
      if (a.layer < b.layer) composed_pairs.push_back({a, b, composed(kind, a, b)});
  std::stable_sort(composed_pairs.begin(), composed_pairs.end(),
                   [](const auto& a, const auto& b) { return a.score > b.score; });
  composed_pairs.resize(std::min(composed_pairs.size(), request.top));
  return composed_pairs;
}

void check_request(const HeadCircuitsRequest& request) {
  if (!request.from.empty() && request.heads.empty())
    throw RequestError("tokens to begin with choose among token pairs; say of which heads");
}

HeadCircuits run(const HeadCircuitsRequest& request, Models models, const Context& context) {
  const LoadedModel& model = models.only();
  check_request(request);
  const ModelConfig& config = model.config();
  HeadCircuits found;
  found.request = request;
  found.model = model.name(), found.label = model.label();
  found.layers = config.layers, found.heads = config.heads;
  std::vector<HeadId> chosen;
  if (!request.heads.empty()) chosen = parse_heads(request.heads, config.layers, config.heads);
  PairOptions options;
  options.top = request.top;
  for (const std::string& text : request.from)
    options.from.push_back(single_token(model, text, "the token"));
  if (!chosen.empty()) model.tokenizer();  // throws before the work where there is none
  found.alive = find_living_heads(model, request.text, context);
  for (const HeadId& head : all_heads(config.layers, config.heads))
    if (!found.alive || found.alive->heads.lives(head)) found.listed.push_back(head);
  std::vector<HeadId> read = found.listed;
  read.insert(read.end(), chosen.begin(), chosen.end());
  if (read.empty()) return found;  // every gate is closed
  const TokenInputs inputs = inputs_for(request, read, model, context, found);
  for (const HeadId& head : chosen)
    require_inputs(inputs.of_layer(head.layer), options.from, found);
  const std::vector<HeadMatrices> heads = all_head_matrices(model.model());
  context.throw_if_stopped();
  const auto number = [&](const HeadId& head) {
    return static_cast<std::size_t>(head.layer * config.heads + head.head);
  };
  std::vector<std::size_t> numbers;
  for (const HeadId& head : found.listed) numbers.push_back(number(head));
  found.scores = head_circuit_scores(model.model(), inputs, heads, numbers);
  context.throw_if_stopped();
  found.composition = composition_scores(model.model(), heads);
  require_finite(found, model);
  for (const HeadId& head : chosen)
    found.pairs.push_back(
        pairs_of(model, inputs.of_layer(head.layer), heads[number(head)], head, options, context));
  for (const PairsOfHead& pairs : found.pairs)
    for (const std::vector<TokenPair>* list : {&pairs.ov, &pairs.qk})
      for (const TokenPair& pair : *list)
        for (const TokenId id : {pair.from, pair.to}) found.shown.add(model.tokenizer(), id);
  return found;
}

Json pairs_json(const std::vector<TokenPair>& pairs, const ShownTokens& shown) {
  Json list = Json::array();
  for (const TokenPair& pair : pairs)
    list.push_back({{"from", shown[pair.from]},
                    {"to", shown[pair.to]},
                    {"from_id", pair.from},
                    {"to_id", pair.to},
                    {"score", pair.score}});
  return list;
}

Json to_json(const HeadCircuits& found, Matrices matrices) {
  Json heads = Json::array(), composition = Json::object(), pairs = Json::array();
  for (std::size_t i = 0; i < found.scores.size(); ++i) {
    const HeadId& head = found.listed[i];
    heads.push_back({{"name", head_name(head)},
                     {"layer", head.layer},
                     {"head", head.head},
                     {"copying", found.scores[i].copying},
                     {"matching", found.scores[i].matching}});
  }
  for (const Named<Composition>& kind : kNames<Composition>)
    composition[std::string(kind.name)] = composition_json(found, kind.value, matrices);
  for (const PairsOfHead& one : found.pairs)
    pairs.push_back({{"name", head_name(one.head)},
                     {"layer", one.head.layer},
                     {"head", one.head.head},
                     {"ov", pairs_json(one.ov, found.shown)},
                     {"qk", pairs_json(one.qk, found.shown)}});
  return {{"model", found.model},
          {"input", name_of(found.request.input)},
          {"text", found.text.empty() ? Json() : Json(found.text)},
          {"living_heads", found.alive ? to_json(*found.alive) : Json()},
          {"heads", heads},
          {"random_composition", found.composition.random},
          {"less_random", found.request.less_random},
          {"composition", composition},
          {"token_pairs", pairs}};
}

figure::LabelledMaps figure_of(const HeadCircuits& found) {
  require(!found.listed.empty() && found.listed.front().layer < found.listed.back().layer,
          "'{}' has no heads that compose: fewer than two of its layers have a head that opens",
          printable(found.label));
  figure::LabelledMaps maps;
  maps.title = fmt::format("Composition of heads: {}", found.label);
  const bool less = found.request.less_random;
  maps.kind = less ? figure::ScaleKind::kDifference : figure::ScaleKind::kMagnitude;
  maps.scale_label = less ? "score less that of random matrices" : "score";
  maps.panels = {panel_of(found, Composition::kQuery, "Q-composition"),
                 panel_of(found, Composition::kKey, "K-composition"),
                 panel_of(found, Composition::kValue, "V-composition")};
  maps.caption = fmt::format(
      "How much a later head reads, as its query, key or value, of what an earlier one writes. "
      "Random matrices of this size: {:.3f}.{}",
      found.composition.random,
      found.alive ? fmt::format(" Of {} heads the {} that open an edge on {}.",
                                found.alive->heads.heads, found.listed.size(), found.alive->source)
                  : std::string());
  return maps;
}

Knobs knobs_of(HeadCircuitsRequest& request) {
  Knobs knobs;
  knobs.section("Composition");
  knobs.flag({.name = "less-random",
              .what = "subtract the expected score of random matrices from composition scores"},
             request.less_random);
  return knobs;
}

}  // namespace filigree::study
