#include "filigree/study/lens/head_circuits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "filigree/base/error.h"
#include "filigree/base/strings.h"
#include "filigree/study/not_finite.h"

namespace filigree::study {
namespace {

// The pairs of one head, both circuits under a report each.
PairsOfHead pairs_of(const LoadedModel& model, const HeadMatrices& matrices, const HeadId& head,
                     PairOptions options, const Context& context) {
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
    (ov ? pairs.ov : pairs.qk) = ov ? top_ov_pairs(model.model(), matrices, options)
                                    : top_qk_pairs(model.model(), matrices, options);
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

// [earlier][later]; null where the layer is not later.
Json matrix_json(const HeadCircuits& found, Composition kind) {
  const std::int64_t H = found.heads, all = found.layers * H;
  Json rows = Json::array();
  for (std::int64_t a = 0; a < all; ++a) {
    Json row = Json::array();
    for (std::int64_t b = 0; b < all; ++b)
      row.push_back(a / H < b / H ? Json(found.composed(kind, a, b)) : Json());
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

figure::MapPanel panel_of(const HeadCircuits& found, Composition kind, std::string title) {
  const std::int64_t L = found.layers, H = found.heads, all = L * H;
  figure::MapPanel panel;
  panel.title = std::move(title);
  panel.rows.name = "earlier head", panel.columns.name = "later head";
  // The last layer writes to no head and the first reads from none.
  for (std::int64_t l = 0; l < L; ++l) {
    figure::AxisGroup group = {fmt::format("L{}", l), static_cast<std::size_t>(H)};
    if (l + 1 < L) panel.rows.groups.push_back(group);
    if (l > 0) panel.columns.groups.push_back(group);
  }
  for (std::int64_t a = 0; a < all - H; ++a) {
    panel.rows.labels.push_back(head_name({a / H, a % H}));
    for (std::int64_t b = H; b < all; ++b)
      panel.values.push_back(a / H < b / H ? static_cast<float>(found.composed(kind, a, b))
                                           : std::numeric_limits<float>::quiet_NaN());
  }
  for (std::int64_t b = H; b < all; ++b) panel.columns.labels.push_back(head_name({b / H, b % H}));
  return panel;
}

}  // namespace

HeadId HeadCircuits::head(std::size_t index) const {
  const auto number = static_cast<std::int64_t>(index);
  return {number / heads, number % heads};
}

double HeadCircuits::composed(Composition kind, std::int64_t earlier, std::int64_t later) const {
  return composition.at(kind, earlier, later) - (request.less_random ? composition.random : 0);
}

std::vector<ComposedPair> HeadCircuits::strongest(Composition kind) const {
  const std::int64_t all = layers * heads;
  std::vector<ComposedPair> found;
  for (std::int64_t a = 0; a < all; ++a)
    for (std::int64_t b = (a / heads + 1) * heads; b < all; ++b)
      found.push_back({{a / heads, a % heads}, {b / heads, b % heads}, composed(kind, a, b)});
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.score > b.score; });
  found.resize(std::min(found.size(), request.top));
  return found;
}

void check_request(const HeadCircuitsRequest& request) {
  if (!request.from.empty() && request.heads.empty())
    throw RequestError("tokens to begin with choose among token pairs; say of which heads");
}

HeadCircuits find_head_circuits(const HeadCircuitsRequest& request, const LoadedModel& model,
                                const Context& context) {
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
  const std::vector<HeadMatrices> heads = all_head_matrices(model.model());
  context.throw_if_stopped();
  found.scores = head_circuit_scores(model.model(), heads);
  context.throw_if_stopped();
  found.composition = composition_scores(model.model(), heads);
  require_finite(found, model);
  for (const HeadId& head : chosen)
    found.pairs.push_back(
        pairs_of(model, heads[static_cast<std::size_t>(head.layer * config.heads + head.head)],
                 head, options, context));
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
    const HeadId head = found.head(i);
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
          {"heads", heads},
          {"random_composition", found.composition.random},
          {"less_random", found.request.less_random},
          {"composition", composition},
          {"token_pairs", pairs}};
}

figure::LabelledMaps figure_of(const HeadCircuits& found) {
  require(found.layers > 1, "a model of one layer has no heads that compose");
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
      "Random matrices of this size: {:.3f}.",
      found.composition.random);
  return maps;
}

}  // namespace filigree::study
