#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "filigree/circuit_study.h"
#include "filigree/error.h"
#include "filigree/maps.h"
#include "filigree/names.h"

namespace filigree::study {
namespace {

bool drawable(const ModelCircuit& circuit) {
  return circuit.options.parts == Parts::kAttentionEdges && circuit.found && circuit.found->cells &&
         circuit.size().value_or(0) > 0;
}

// The number of the prompt with these tokens in this model's task.
std::optional<std::size_t> find_prompt(const ModelCircuit& circuit, const TaskPrompt& wanted) {
  const std::vector<TaskPrompt>& prompts = circuit.task.prompts.prompts;
  for (std::size_t i = 0; i < prompts.size(); ++i)
    if (prompts[i].clean == wanted.clean && prompts[i].tokens == wanted.tokens) return i;
  return std::nullopt;
}

std::vector<figure::TokenEdge> kept_edges(const CellScores::OfPrompt& scores, std::size_t count) {
  std::vector<std::size_t> order = scores.order();
  order.resize(std::min(count, order.size()));
  std::vector<figure::TokenEdge> edges;
  for (const std::size_t i : order) {
    const AttentionCell& cell = scores.cells[i];
    edges.push_back({{cell.layer, cell.head},
                     static_cast<std::size_t>(cell.query),
                     static_cast<std::size_t>(cell.key),
                     scores.drops[i]});
  }
  return edges;
}

// What the heads of the edges attend with on the prompt.
void add_edge_attention(const Model& model, const TaskPrompt& prompt,
                        std::vector<figure::TokenEdge>& edges) {
  std::map<HeadId, std::vector<std::size_t>> of_head;
  for (std::size_t i = 0; i < edges.size(); ++i) of_head[edges[i].head].push_back(i);
  std::vector<HeadId> heads;
  for (const auto& [head, numbers] : of_head) heads.push_back(head);
  const std::vector<Prompt> prompts = {{prompt.clean}};
  capture_maps(model, prompts, CaptureOptions::of(heads, MapKind::kWeights),
               [&](std::span<const HeadMap> maps) {
                 for (const HeadMap& map : maps)
                   for (const std::size_t i : of_head.at(map.head)) {
                     figure::TokenEdge& edge = edges[i];
                     edge.attention = static_cast<double>(
                         map.weights[edge.query * static_cast<std::size_t>(map.length) + edge.key]);
                   }
               });
}

// MLPs by position, as far as they matter: estimates for all of them from one gradient.
std::vector<figure::TokenMlp> mlps_of(const Model& model, const ModelCircuit& circuit,
                                      const TaskPrompt& prompt) {
  if (circuit.task.metric == Metric::kAccuracy) return {};  // which has no gradient
  std::vector<PatchTarget> targets;
  for (std::int64_t layer = 0; layer < model.config().layers; ++layer)
    for (std::int64_t position = 0; position < prompt.length(); ++position)
      targets.push_back({Site::kMlpOut, layer, -1, position});
  PatchOptions options;
  options.metric = circuit.task.metric;
  options.replacement = circuit.options.replacement;
  const Importance importance = attributed_importance(model, {prompt}, targets, 0, options);
  const double least = kMlpShare * std::abs(importance.clean[0] - importance.corrupt[0]);
  std::vector<figure::TokenMlp> mlps;
  for (std::size_t i = 0; i < targets.size(); ++i)
    if (const double score = importance.drops[i][0]; std::abs(score) >= least && score != 0)
      mlps.push_back({static_cast<std::size_t>(targets[i].layer),
                      static_cast<std::size_t>(targets[i].position), score});
  return mlps;
}

std::string panel_title(const CircuitsOfKind& circuits, const ModelCircuit& circuit) {
  const std::size_t size = *circuit.size();
  std::string title = fmt::format("{}: {}", circuit.label, counted(size, "attention edge"));
  const std::optional<double> ratio = size_ratio(circuits[0], circuit);
  if (&circuit != &circuits[0] && ratio && *ratio > 1)
    title += fmt::format(", {:.{}f} \u00D7 fewer", *ratio, *ratio < 10 ? 1 : 0);
  return title;
}

std::string left_out_cells_text(Replacement replacement) {
  return replacement == Replacement::kZero ? "zero" : "as for the corrupt prompt";
}

}  // namespace

std::optional<figure::TokenCircuit> token_circuit_of(const CircuitsOfKind& circuits,
                                                     Models models) {
  require(circuits.size() == models.size(), "{} circuits are of as many models, not of {}",
          circuits.size(), models.size());
  const auto first = std::find_if(circuits.begin(), circuits.end(), drawable);
  if (first == circuits.end()) return std::nullopt;
  const ExamplePrompt example = example_prompt(circuits, models);
  const std::vector<TaskPrompt>& prompts = first->task.prompts.prompts;
  const auto chosen = std::find_if(prompts.begin(), prompts.end(), [&](const TaskPrompt& one) {
    return one.text.clean == example.text;
  });
  const TaskPrompt& prompt = chosen == prompts.end() ? prompts[0] : *chosen;
  const bool exact = first->options.method == Method::kExact;
  figure::TokenCircuit figure;
  figure.tokens = prompt.tokens;
  figure.roles = prompt.roles;
  std::string left_out;
  for (std::size_t m = 0; m < circuits.size(); ++m) {
    const ModelCircuit& circuit = circuits[m];
    if (!drawable(circuit)) continue;
    const std::optional<std::size_t> place = find_prompt(circuit, prompt);
    if (!place) {
      left_out += fmt::format(" {} takes the prompt as other tokens and is not drawn.",
                              printable(circuit.label));
      continue;
    }
    const Model& model = models[m].model();
    figure.layers = std::max(figure.layers, static_cast<std::size_t>(model.config().layers));
    const CellScores& cells = *circuit.found->cells;
    std::vector<figure::TokenEdge> edges = kept_edges(cells.prompts[*place], *circuit.size());
    add_edge_attention(model, circuit.task.prompts.prompts[*place], edges);
    figure.panels.push_back(
        {.title = panel_title(circuits, circuit),
         .edges = std::move(edges),
         .mlps = mlps_of(model, circuit, circuit.task.prompts.prompts[*place]),
         .answer = prompt.text.answers.empty() ? "" : prompt.text.answers[0],
         .note = fmt::format("{} of this prompt {:.3g}", name_of(circuit.task.metric),
                             cells.clean[*place])});
  }
  figure.title = fmt::format("Attention edges that explain {:g} % of the task {}",
                             100 * first->options.level, task_title(first->task));
  const std::string score =
      exact ? "drops"
            : fmt::format("{} scores", method_name(first->options.parts, first->options.method));
  figure.score_label =
      exact
          ? fmt::format("drop of {} without the edge", name_of(first->task.metric))
          : fmt::format("{} score of {}", method_name(first->options.parts, first->options.method),
                        name_of(first->task.metric));
  figure.caption = fmt::format(
      "Prompt: \u201C{}\u201D ({}). A line runs from the token that a head reads up to the token "
      "that "
      "it "
      "writes to; behind a head's name is its attention weight. Kept are the edges of each prompt "
      "with the largest {}, all others {}, until "
      "{:g} % of the effect on {} is there. Squares: MLPs worth at least {:g} % of it by "
      "the "
      "gradient of the clean run.{}",
      prompt.text.clean, example.chosen, score, left_out_cells_text(first->options.replacement),
      100 * first->options.level, counted(first->task.prompts.prompts.size(), "prompt"),
      100 * kMlpShare, left_out);
  return figure;
}

}  // namespace filigree::study
