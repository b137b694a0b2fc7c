// What a head looks at.
#include <algorithm>
#include <cmath>
#include <map>

#include "study/head/head_parts.h"

namespace filigree::study {
namespace {

// Weights below this are dust, not edges.
constexpr float kLeastEdge = 0.02f;
constexpr std::int64_t kMapTokens = 2048;

using EdgesByTokens = std::map<std::pair<TokenId, TokenId>, TokenEdge>;

// Adds the edges of one map, all between the same two tokens as one.
void add_edges(const HeadMap& map, const Prompt& prompt, EdgesByTokens& edges) {
  const std::int64_t T = map.length;
  for (std::int64_t i = 0; i < T; ++i)
    for (std::int64_t j = 0; j <= i; ++j) {
      const float weight = map.weights[static_cast<std::size_t>(i * T + j)];
      if (weight < kLeastEdge) continue;
      const TokenId query = prompt.ids[static_cast<std::size_t>(i)],
                    key = prompt.ids[static_cast<std::size_t>(j)];
      TokenEdge& edge = edges[{query, key}];
      edge.query = query, edge.key = key;
      ++edge.count;
      edge.mean += static_cast<double>(weight);
      // Of equals the first prompt, in which later positions have seen more.
      const bool stronger = static_cast<double>(weight) > edge.weight ||
                            (static_cast<double>(weight) == edge.weight &&
                             map.prompt == edge.prompt && i > edge.query_position);
      if (edge.count > 1 && !stronger) continue;
      edge.prompt = map.prompt, edge.query_position = i, edge.key_position = j;
      edge.weight = static_cast<double>(weight);
    }
}

}  // namespace

void look_at_attention(const LoadedModel& model, const PromptSet& prompts, const Context& context,
                       HeadFacts& facts) {
  EdgesByTokens edges;
  double mass = 0;
  AnalysisPlan plan;
  plan.heads = {facts.head};
  plan.roles = true;
  plan.each = [&](std::span<const HeadMap> maps) {
    for (const HeadMap& map : maps) {
      add_edges(map, prompts.prompts[map.prompt], edges);
      for (std::int64_t i = 0; i < map.length; ++i) {
        double row = 0;
        for (std::int64_t j = 0; j <= i; ++j)
          row += static_cast<double>(map.weights[static_cast<std::size_t>(i * map.length + j)]);
        ++facts.rows;
        if (row >= kRoleThresholds.empty_row_mass) ++facts.open_rows;
        mass += row;
      }
    }
  };
  const AnalysedModel analysed = analyse_model(model, prompts, plan, context);
  facts.role = analysed.roles.at(0);
  facts.role_scores = analysed.role_scores.at(0);
  facts.mean_mass = facts.rows > 0 ? mass / static_cast<double>(facts.rows) : 0;
  for (auto& [tokens, edge] : edges) {
    edge.share = mass > 0 ? edge.mean / mass : 0;
    edge.mean /= static_cast<double>(edge.count);
    facts.edges.push_back(edge);
  }
  std::stable_sort(facts.edges.begin(), facts.edges.end(),
                   [](const TokenEdge& a, const TokenEdge& b) { return a.share > b.share; });
}

std::vector<double> map_correlations(const LoadedModel& model, const HeadId& head,
                                     const LoadedModel& other, std::span<const Prompt> prompts,
                                     const Context& context) {
  std::vector<std::vector<float>> own(prompts.size());  // causal cells, prompt by prompt
  const auto causal = [](const HeadMap& map, auto&& body) {
    for (std::int64_t i = 0; i < map.length; ++i)
      for (std::int64_t j = 0; j <= i; ++j)
        body(map.weights[static_cast<std::size_t>(i * map.length + j)]);
  };
  CaptureOptions one = CaptureOptions::of({head}, MapKind::kWeights);
  one.batch_tokens = kMapTokens;
  capture_maps(model.model(), prompts, one, [&](std::span<const HeadMap> maps) {
    context.throw_if_stopped();
    for (const HeadMap& map : maps)
      causal(map, [&](float weight) { own[map.prompt].push_back(weight); });
  });

  const ModelConfig& config = other.config();
  struct Sums {
    double y = 0, yy = 0, xy = 0;
  };
  std::vector<Sums> sums(static_cast<std::size_t>(config.layers * config.heads));
  CaptureOptions all =
      CaptureOptions::of(filigree::all_heads(config.layers, config.heads), MapKind::kWeights);
  all.batch_tokens = kMapTokens;
  capture_maps(other.model(), prompts, all, [&](std::span<const HeadMap> maps) {
    context.throw_if_stopped();
    for (const HeadMap& map : maps) {
      Sums& sum = sums[map.slot];
      std::size_t cell = 0;
      causal(map, [&](float weight) {
        const auto y = static_cast<double>(weight);
        sum.y += y, sum.yy += y * y;
        sum.xy += y * static_cast<double>(own[map.prompt][cell++]);
      });
    }
  });
  double n = 0, x = 0, xx = 0;
  for (const std::vector<float>& cells : own)
    for (const float weight : cells) {
      n += 1, x += static_cast<double>(weight);
      xx += static_cast<double>(weight) * static_cast<double>(weight);
    }
  std::vector<double> correlations;
  for (const Sums& sum : sums) {
    const double spread = (xx - x * x / n) * (sum.yy - sum.y * sum.y / n);
    correlations.push_back(spread > 0 ? (sum.xy - x * sum.y / n) / std::sqrt(spread) : 0.0);
  }
  return correlations;
}

}  // namespace filigree::study
