#include <algorithm>
#include <cmath>

#include "filigree/maps.h"
#include "filigree/trace_study.h"

namespace filigree::study {
namespace {

constexpr std::array<RunMode, kRunModes> kModes = {RunMode::kConstrained, RunMode::kFrozen,
                                                   RunMode::kFree};
constexpr std::size_t kAblatedHeads = 24;

// Spearman's, of magnitudes; 0 of fewer than three.
template <typename Items, typename A, typename B>
double rank_correlation_of(const Items& items, const A& a, const B& b) {
  if (items.size() < 3) return 0.0;
  std::vector<float> series(2 * items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    series[i] = static_cast<float>(std::abs(a(items[i])));
    series[items.size() + i] = static_cast<float>(std::abs(b(items[i])));
  }
  const double found =
      static_cast<double>(filigree::rank_correlation(series, 2, items.size(), items.size())[1]);
  return std::isfinite(found) ? found : 0.0;
}

// Evenly over the ranks of the features by influence, from the most influential one on: among the
// strongest alone influence hardly differs.
std::vector<std::int64_t> over_ranks(const TracedModel& traced, std::int64_t count) {
  std::vector<std::int64_t> nodes;
  for (std::int64_t f = 0; f < traced.graph.features; ++f) nodes.push_back(f);
  std::stable_sort(nodes.begin(), nodes.end(), [&](std::int64_t a, std::int64_t b) {
    return traced.pruned.influence[static_cast<std::size_t>(a)] >
           traced.pruned.influence[static_cast<std::size_t>(b)];
  });
  std::vector<std::int64_t> chosen;
  const std::int64_t all = std::ssize(nodes);
  for (std::int64_t i = 0; i < std::min(count, all); ++i)
    chosen.push_back(nodes[static_cast<std::size_t>(
        count >= all || count == 1 ? i : i * (all - 1) / (count - 1))]);
  return chosen;
}

std::vector<AblatedHead> carrying_most(const TracedModel& traced) {
  const std::int64_t H = traced.frozen.heads;
  std::vector<AblatedHead> heads;
  for (std::int64_t l = 0; l < traced.frozen.depth(); ++l)
    for (std::int64_t h = 0; h < H; ++h) {
      AblatedHead head{{l, h}, 0.0, 0.0};
      for (const CarriedPair& pair : traced.pairs)
        head.loading += std::abs(static_cast<double>(pair.loading.heads.f32()[l * H + h]));
      if (head.loading > 0.0) heads.push_back(head);
    }
  std::stable_sort(heads.begin(), heads.end(), [](const AblatedHead& a, const AblatedHead& b) {
    return a.loading > b.loading;
  });
  if (heads.size() > kAblatedHeads) heads.resize(kAblatedHeads);
  return heads;
}

}  // namespace

TraceValidation validate_trace(const TracedModel& traced, const FeaturesOfModel& through,
                               std::int64_t features, const Context& context) {
  const GraphTarget& target = traced.targets[0];
  if (target.of_layer >= 0)
    throw RequestError("effects are measured on predictions, not on a feature");
  const ChangedRuns runs(through.model->model(), traced.frozen, *through.features);
  const PredictedEffects predicted = predicted_ablations(traced.graph, 0);
  const auto change = [&](const RunChanges& changes, RunMode mode) {
    context.throw_if_stopped();
    return runs.value(target, runs.logits(changes, mode)) - target.value;
  };
  TraceValidation result;
  RunChanges group;
  const std::unique_ptr<WorkReport> report =
      context.begin({"ablations", "features", std::min(features, traced.graph.features)});
  for (const std::int64_t f : over_ranks(traced, features)) {
    const GraphNode& node = traced.graph.nodes[static_cast<std::size_t>(f)];
    AblatedFeature ablated;
    ablated.node = f;
    ablated.influence = traced.pruned.influence[static_cast<std::size_t>(f)];
    ablated.direct = predicted.direct[static_cast<std::size_t>(f)];
    ablated.total = predicted.total[static_cast<std::size_t>(f)];
    const FeatureChange taken = {{node.layer, node.feature}, node.position, node.activation, 0.0};
    for (std::size_t m = 0; m < kRunModes; ++m)
      ablated.measured[m] = change({.features = {taken}}, kModes[m]);
    group.features.push_back(taken);
    result.group_direct += ablated.direct;
    result.features.push_back(ablated);
    report->update(std::ssize(result.features));
  }
  report->finish();
  for (std::size_t m = 0; m < kRunModes; ++m) {
    const auto measured = [m](const AblatedFeature& f) { return f.measured[m]; };
    result.influence_correlation[m] = rank_correlation_of(
        result.features, [](const AblatedFeature& f) { return f.influence; }, measured);
    result.total_correlation[m] = rank_correlation_of(
        result.features, [](const AblatedFeature& f) { return f.total; }, measured);
    if (!group.features.empty()) result.group_measured[m] = change(group, kModes[m]);
  }
  result.heads = carrying_most(traced);
  for (AblatedHead& head : result.heads)
    head.measured = change({.heads = {{head.head, 0.0}}}, RunMode::kFrozen);
  result.head_correlation = rank_correlation_of(
      result.heads, [](const AblatedHead& h) { return h.loading; },
      [](const AblatedHead& h) { return h.measured; });
  return result;
}

Json to_json(const TraceValidation& validation, const TracedModel& traced) {
  const auto by_mode = [](const std::array<double, kRunModes>& values) {
    return Json{{"constrained", values[0]}, {"attention_frozen", values[1]}, {"free", values[2]}};
  };
  Json features = Json::array(), heads = Json::array();
  for (const AblatedFeature& f : validation.features)
    features.push_back({{"node", f.node},
                        {"name", node_name(traced, f.node)},
                        {"position", traced.graph.nodes[static_cast<std::size_t>(f.node)].position},
                        {"influence", f.influence},
                        {"predicted_direct", f.direct},
                        {"predicted_total", f.total},
                        {"measured", by_mode(f.measured)}});
  for (const AblatedHead& head : validation.heads)
    heads.push_back(
        {{"head", head_name(head.head)}, {"loading", head.loading}, {"measured", head.measured}});
  return {{"features", features},
          {"influence_correlation", by_mode(validation.influence_correlation)},
          {"predicted_correlation", by_mode(validation.total_correlation)},
          {"group_predicted", validation.group_direct},
          {"group_measured", by_mode(validation.group_measured)},
          {"heads", heads},
          {"head_correlation", validation.head_correlation}};
}

}  // namespace filigree::study
