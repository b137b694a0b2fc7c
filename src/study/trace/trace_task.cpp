#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "filigree/names.h"
#include "filigree/trace_study.h"

namespace filigree::study {
namespace {

constexpr std::size_t kListedHeads = 20, kListedFeatures = 20;

// What is gathered over prompts.
struct Gathered {
  std::int64_t prompts = 0, correct = 0;
  std::vector<double> pair_heads, heads, nodes, edges, replacement, completeness, single;
  std::vector<double> influence, predicted;
  std::map<HeadId, std::vector<double>> shares;
  std::map<std::pair<FeatureId, std::string>, std::pair<std::int64_t, double>> features;
  std::map<std::string, std::int64_t> pairs;
  std::map<double, double> curve;
};

std::string role_at(const TaskPrompt& prompt, std::int64_t position) {
  const auto p = static_cast<std::size_t>(position);
  return p < prompt.roles.size() && !prompt.roles[p].empty() ? prompt.roles[p]
                                                             : std::to_string(position);
}

void gather(const TracedModel& traced, const TaskPrompt& prompt, Gathered& to) {
  ++to.prompts;
  to.correct += traced.targets[0].value > 0.0 ? 1 : 0;
  to.heads.push_back(static_cast<double>(traced.heads_for_80));
  to.nodes.push_back(static_cast<double>(traced.pruned.count()));
  to.edges.push_back(static_cast<double>(traced.pruned.edges.size()));
  to.replacement.push_back(traced.scores.replacement);
  to.completeness.push_back(traced.scores.completeness);
  std::map<std::pair<FeatureId, std::string>, double> here;
  for (std::int64_t f = 0; f < traced.graph.features; ++f)
    if (traced.pruned.kept[static_cast<std::size_t>(f)]) {
      const GraphNode& node = traced.graph.nodes[static_cast<std::size_t>(f)];
      here[{FeatureId{node.layer, node.feature}, role_at(prompt, node.position)}] +=
          traced.pruned.influence[static_cast<std::size_t>(f)];
    }
  for (const auto& [feature, influence] : here) {
    ++to.features[feature].first;
    to.features[feature].second += influence;
  }
  if (!traced.pair || traced.pair->heads.empty()) return;
  const CarriedPair& pair = *traced.pair;
  to.pair_heads.push_back(static_cast<double>(pair.heads_for_80));
  const double whole = pair.loading.single + pair.loading.several;
  if (whole > 0.0) to.single.push_back(std::clamp(pair.loading.single / whole, 0.0, 1.0));
  ++to.pairs[fmt::format("{} to {}", role_at(prompt, pair.loading.from),
                         role_at(prompt, pair.loading.to))];
  double all = 0.0;
  for (const RankedHead& head : pair.heads) all += std::abs(head.loading);
  for (const RankedHead& head : pair.heads)
    to.shares[{head.layer, head.head}].push_back(std::abs(head.loading) / all);
  for (int percent = 10; percent <= 95; percent += 5) {
    const double share = percent / 100.0;
    to.curve[share] += static_cast<double>(fewest_for_share(pair.heads, share));
  }
}

TracedTask summed_up(const FeaturesOfModel& through, Gathered& gathered) {
  TracedTask task;
  task.model = through.model->name(), task.label = through.model->label();
  task.features = through.name;
  task.prompts = gathered.prompts, task.correct = gathered.correct;
  task.pair_heads_for_80 = estimate(gathered.pair_heads);
  task.heads_for_80 = estimate(gathered.heads);
  task.nodes = estimate(gathered.nodes);
  task.edges = estimate(gathered.edges);
  task.replacement = estimate(gathered.replacement);
  task.completeness = estimate(gathered.completeness);
  task.single_share = estimate(gathered.single);
  task.influence_correlation = estimate(gathered.influence);
  task.predicted_correlation = estimate(gathered.predicted);
  for (auto& [head, shares] : gathered.shares) {
    shares.resize(gathered.pair_heads.size());  // none of it in the other prompts
    task.heads.push_back({head, estimate(shares)});
  }
  std::stable_sort(
      task.heads.begin(), task.heads.end(),
      [](const SharedHead& a, const SharedHead& b) { return a.share.mean > b.share.mean; });
  for (const auto& [key, found] : gathered.features)
    task.shared.push_back({key.first, key.second,
                           static_cast<double>(found.first) / static_cast<double>(gathered.prompts),
                           found.second / static_cast<double>(gathered.prompts)});
  std::stable_sort(task.shared.begin(), task.shared.end(),
                   [](const SharedFeature& a, const SharedFeature& b) {
                     return std::pair(a.prompts, a.influence) > std::pair(b.prompts, b.influence);
                   });
  for (const auto& [pair, count] : gathered.pairs) task.pairs.emplace_back(pair, count);
  std::stable_sort(task.pairs.begin(), task.pairs.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  for (const auto& [share, sum] : gathered.curve)
    task.curve.emplace_back(share, sum / static_cast<double>(gathered.pair_heads.size()));
  return task;
}

}  // namespace

TaskTraceResult run(const TaskTraceRequest& request, Models models, const Context& context) {
  require(!models.empty(), "there is no model to trace");
  const std::vector<FeaturesOfModel> through = features_of_models(request.trace.features, models);
  const LoadedTask task = load_task(request.task, models.back(), context);
  std::vector<Gathered> gathered(models.size());
  const auto count = static_cast<std::int64_t>(task.prompts.prompts.size());
  const std::unique_ptr<WorkReport> report = context.begin({"traces", "prompts", count});
  std::int64_t done = 0;
  for (const TaskPrompt& prompt : task.prompts.prompts) {
    TraceRequest same = request.trace;
    same.edge_loadings = false;
    // The last model chooses the pair of tokens that all look at.
    for (std::size_t i = models.size(); i-- > 0;) {
      context.throw_if_stopped();
      const TracedModel traced = trace_ids(
          same, through[i], prompt.clean,
          [&](const FrozenModel& frozen) {
            return std::vector<GraphTarget>{
                logit_difference(frozen, prompt.answers.at(0), prompt.wrong.at(0))};
          },
          context);
      if (!same.key && traced.pair)
        same.key = traced.pair->loading.from, same.query = traced.pair->loading.to;
      gather(traced, prompt, gathered[i]);
      if (request.trace.validated == 0) continue;
      Context quiet = context;
      quiet.watch = {};
      const TraceValidation validation =
          validate_trace(traced, through[i], request.trace.validated, quiet);
      gathered[i].influence.push_back(validation.influence_correlation[1]);
      gathered[i].predicted.push_back(validation.total_correlation[1]);
    }
    report->update(++done);
  }
  report->finish();
  TaskTraceResult result{request, task_title(task), {}};
  for (std::size_t i = 0; i < models.size(); ++i)
    result.models.push_back(summed_up(through[i], gathered[i]));
  return result;
}

Json to_json(const TaskTraceResult& result) {
  Json models = Json::array();
  for (const TracedTask& task : result.models) {
    Json heads = Json::array(), features = Json::array(), pairs = Json::array(),
         curve = Json::array();
    for (std::size_t h = 0; h < std::min(kListedHeads, task.heads.size()); ++h)
      heads.push_back(
          {{"head", head_name(task.heads[h].head)}, {"share", to_json(task.heads[h].share)}});
    for (std::size_t f = 0; f < std::min(kListedFeatures, task.shared.size()); ++f)
      features.push_back({{"feature", feature_name(task.shared[f].feature)},
                          {"role", task.shared[f].role},
                          {"prompt_share", task.shared[f].prompts},
                          {"influence", task.shared[f].influence}});
    for (const auto& [pair, count] : task.pairs)
      pairs.push_back({{"roles", pair}, {"prompts", count}});
    for (const auto& [share, count] : task.curve)
      curve.push_back({{"share", share}, {"heads", count}});
    const bool validated = result.request.trace.validated > 0;
    models.push_back(
        {{"model", task.model},
         {"label", task.label},
         {"features", task.features},
         {"prompts", task.prompts},
         {"correct", task.correct},
         {"pair_heads_for_80", to_json(task.pair_heads_for_80)},
         {"heads_for_80", to_json(task.heads_for_80)},
         {"nodes", to_json(task.nodes)},
         {"edges", to_json(task.edges)},
         {"replacement_score", to_json(task.replacement)},
         {"completeness_score", to_json(task.completeness)},
         {"single_hop", to_json(task.single_share)},
         {"influence_correlation", validated ? to_json(task.influence_correlation) : Json()},
         {"predicted_correlation", validated ? to_json(task.predicted_correlation) : Json()},
         {"heads", heads},
         {"shared_features", features},
         {"pairs", pairs},
         {"curve", curve}});
  }
  return {{"task", result.task}, {"validated", result.request.trace.validated}, {"models", models}};
}

}  // namespace filigree::study
