#include "serve/arcs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyze/interventions/cut_edges.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "filigree/study.h"
#include "serve/changed_run.h"

namespace filigree::serve {
namespace {

struct Edge {
  HeadId head = {};
  std::size_t query = 0, key = 0;
  double weight = 0;
};

Json edges_json(const std::vector<Edge>& edges) {
  Json list = Json::array();
  for (const Edge& edge : edges)
    list.push_back({{"head", head_name(edge.head)},
                    {"query", edge.query},
                    {"key", edge.key},
                    {"weight", edge.weight}});
  return list;
}

// One arc between two tokens, as strong as the strongest of its heads.
figure::ArcSide side_of(const std::string& name, std::size_t color,
                        const std::vector<Edge>& edges) {
  std::map<std::pair<std::size_t, std::size_t>, double> strongest;
  for (const Edge& edge : edges) {
    double& weight = strongest[{edge.query, edge.key}];
    weight = std::max(weight, std::min(edge.weight, 1.0));
  }
  figure::ArcSide side = {name, color, {}};
  for (const auto& [ends, weight] : strongest)
    side.arcs.push_back({ends.first, ends.second, weight});
  return side;
}

std::string changed_note(const Interventions& changes) {
  return changes.empty() ? "" : fmt::format(" Changed: {}.", text_of(changes));
}

// Both ways, from and to position `at`, without those that carry nothing in this run.
std::vector<Edge> edges_of(const study::LoadedModel& model, const ChangedRun& run, std::size_t at,
                           const ExportQuery& query, const study::Context& context) {
  const ModelConfig& config = model.config();
  CaptureOptions options = CaptureOptions::of(
      query.layer ? parse_heads(layer_name(*query.layer), config.layers, config.heads)
                  : all_heads(config.layers, config.heads),
      MapKind::kWeights);
  AppliedInterventions changes(model.model(), run.interventions);
  options.interventions = &changes;
  const std::size_t T = run.prompt.ids.size();
  const std::vector<CutEdges> cut =
      cut_edges(run.interventions, config, static_cast<std::int64_t>(T));
  std::vector<Edge> edges;
  capture_maps(
      model.model(), std::span(&run.prompt, 1), options, [&](std::span<const HeadMap> heads) {
        context.throw_if_stopped();
        for (const HeadMap& map : heads) {
          const auto add = [&](std::size_t i, std::size_t j) {
            const double weight = map.weights[i * T + j];
            const auto reader = static_cast<std::int64_t>(i), read = static_cast<std::int64_t>(j);
            if (weight > 0 && weight >= query.least && !is_cut(cut, map.head, reader, read))
              edges.push_back({map.head, i, j, weight});
          };
          for (std::size_t key = 0; key <= at; ++key) add(at, key);
          for (std::size_t later = at + 1; later < T; ++later) add(later, at);
        }
      });
  std::stable_sort(edges.begin(), edges.end(),
                   [](const Edge& a, const Edge& b) { return a.weight > b.weight; });
  return edges;
}

}  // namespace

Arcs token_arcs(study::Models models, const ExportQuery& query, const Limits& limits,
                const study::Context& context) {
  const ChangedRun first = run_of(models[0], query.run);
  const auto T = static_cast<std::int64_t>(first.prompt.ids.size());
  const std::int64_t asked = query.at.value_or(-1), at = asked < 0 ? asked + T : asked;
  require(at >= 0 && at < T, "the request: at is {}, the prompt has {} tokens", asked, T);
  check_cells(static_cast<std::size_t>(models[0].config().layers * models[0].config().heads),
              first.prompt.ids.size(), limits.map_cells);
  figure::ArcSentence sentence = {.tokens = first.prompt.tokens,
                                  .chosen = static_cast<std::size_t>(at)};
  Arcs arcs;
  arcs.json = {{"prompt", query.run.prompt},
               {"at", at},
               {"layer", query.layer ? Json(*query.layer) : Json()},
               {"least", query.least},
               {"interventions", study::to_json(first.interventions)},
               {"models", Json::array()}};
  for (std::size_t m = 0; m < models.size(); ++m) {
    const ChangedRun run = run_of(models[m], query.run);
    const std::vector<Edge> edges =
        edges_of(models[m], run, static_cast<std::size_t>(at), query, context);
    const figure::ArcSide side = side_of(models[m].label(), m, edges);
    m == 0 ? void(sentence.above = side) : void(sentence.below = side);
    arcs.json["models"].push_back({{"model", models[m].label()},
                                   {"tokens", run.prompt.tokens},
                                   {"edges", edges_json(edges)}});
  }
  arcs.figure.title = fmt::format("Where \u201c{}\u201d comes from and goes to",
                                  printable(first.prompt.tokens[static_cast<std::size_t>(at)]));
  arcs.figure.sentences = {sentence};
  arcs.figure.caption = fmt::format(
      "Edges of at least {:.0f} % of {}; full ones bring something to the token, dashed ones take "
      "it on.{}",
      100 * query.least,
      query.layer ? fmt::format("layer {}", *query.layer) : std::string("any layer"),
      changed_note(query.run.interventions));
  return arcs;
}

Arcs generated_arcs(study::Models models, const ExportQuery& query, const study::Context& context) {
  Arcs arcs;
  arcs.figure.title = "Generated text";
  arcs.figure.caption = fmt::format("Edges of at least {:.0f} % from each new token.{}",
                                    100 * query.least, changed_note(query.run.interventions));
  arcs.json = {{"prompt", query.run.prompt},
               {"least", query.least},
               {"temperature", query.steps.sampling.temperature},
               {"seed", query.steps.seed},
               {"models", Json::array()}};
  for (std::size_t m = 0; m < models.size(); ++m) {
    const ChangedRun run = run_of(models[m], query.run);
    AppliedInterventions changes(models[m].model(), run.interventions);
    study::TokenSteps steps(models[m], run.prompt.ids, query.steps,
                            run.interventions.empty() ? nullptr : &changes);
    std::vector<std::string> tokens = run.prompt.tokens;
    std::string text;
    std::vector<Edge> edges;
    while (const std::optional<study::GeneratedToken> token = steps.next()) {
      context.throw_if_stopped();
      for (const study::OpenEdge& edge : token->edges)
        edges.push_back(
            {edge.head, tokens.size(), static_cast<std::size_t>(edge.key), edge.weight});
      tokens.push_back(study::shown_token(models[m].tokenizer(), token->id));
      text += token->text;
    }
    arcs.figure.sentences.push_back({.tokens = tokens,
                                     .above = side_of(models[m].label(), m, edges),
                                     .fresh = run.prompt.tokens.size()});
    arcs.json["models"].push_back({{"model", models[m].label()},
                                   {"text", text},
                                   {"finish", name_of(steps.finish())},
                                   {"tokens", tokens},
                                   {"edges", edges_json(edges)}});
  }
  return arcs;
}

}  // namespace filigree::serve
