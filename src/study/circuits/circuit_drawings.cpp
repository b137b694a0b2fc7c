#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "filigree/circuit_study.h"
#include "filigree/error.h"
#include "filigree/maps.h"
#include "filigree/names.h"
#include "report/circuit_dot.h"
#include "study/circuits/head_marks.h"

namespace filigree::study {
namespace {

constexpr std::size_t kMostExamples = 64;  // prompts among which one is chosen

figure::EffectCurve effect_curve(const ModelCircuit& circuit) {
  figure::EffectCurve result = {.name = circuit.label};
  for (const CurvePoint& point : circuit.found->curve.points) {
    const auto parts = static_cast<double>(point.parts);
    // Edges that lead nowhere add nothing: the same circuit again.
    if (!result.kept.empty() && parts <= result.kept.back()) continue;
    result.kept.push_back(parts);
    result.effect.push_back(point.effect);
    if (point.error) result.error.push_back(*point.error);
  }
  if (const std::optional<std::size_t> size = circuit.size())
    result.size = static_cast<double>(*size);
  return result;
}

std::string others_text(const SearchOptions& options) {
  switch (options.replacement) {
    case Replacement::kZero: return "all others zero";
    case Replacement::kMean:
    case Replacement::kMeanByPosition: return "all others with their mean over prompts";
    case Replacement::kCorrupt: break;
  }
  return "all others with the values of the corrupt prompt";
}

std::string order_text(const SearchOptions& options) {
  switch (options.selection) {
    case Selection::kGreedy:
    case Selection::kGreedyAddition: return "in the order of greedy selection";
    case Selection::kTop: break;
  }
  return "in order of importance";
}

std::string capital(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 32);
  return text;
}

// The prompt of this text as this model's task has it; the same text may be other tokens to another
// model, or not among its prompts (null).
const TaskPrompt* clean_prompt(const ModelCircuit& circuit, const std::string& text) {
  for (const TaskPrompt& prompt : circuit.task.prompts.prompts)
    if (prompt.text.clean == text) return &prompt;
  return nullptr;
}

Prompt example_for(const ModelCircuit& circuit, const Tokenizer& tokenizer,
                   const std::string& text) {
  const TaskPrompt* there = clean_prompt(circuit, text);
  const std::vector<TokenId> ids = there != nullptr ? there->clean : tokenizer.encode(text);
  Prompt prompt = {ids, {}};
  for (const TokenId id : ids) prompt.tokens.push_back(tokenizer.token_text(id));
  return prompt;
}

// What the model makes of the prompt that is drawn, and of all in the mean: "dense 18.134 (8.640)".
std::string metric_text(const ModelCircuit& circuit, const Model& model, const std::string& text) {
  const TaskPrompt* prompt = clean_prompt(circuit, text);
  return fmt::format(
      "{} {} ({:.3f})", circuit.label,
      prompt == nullptr
          ? "-"
          : fmt::format("{:.3f}", score(model, {*prompt}, circuit.task.metric).clean[0]),
      circuit.check.clean.mean);
}

// Whether its parts are experts where those of other models are MLPs.
bool has_experts(const ModelCircuit& circuit) {
  const std::vector<CircuitPart>& parts = circuit.found->parts;
  return std::any_of(parts.begin(), parts.end(), [](const CircuitPart& part) {
    const PatchTarget* target = std::get_if<PatchTarget>(&part.place);
    return target != nullptr && target->site == Site::kExpertOut;
  });
}

// "6 heads", and where MLPs are parts too "6 heads and 3 MLPs", or of mixtures "3 experts".
std::string members_text(const ModelCircuit& circuit) {
  const std::size_t heads = circuit.found->heads.size();
  std::string text = counted(heads, "head");
  if (circuit.options.parts == Parts::kHeadsAndMlps)
    text += " and " +
            counted(circuit.found->members.size() - heads, has_experts(circuit) ? "expert" : "MLP");
  return text;
}

// The maps of the circuit's heads on the prompt, in their order.
figure::GridPanel panel_of(const Model& model, const ModelCircuit& circuit, const Prompt& prompt) {
  const std::vector<HeadId>& order = circuit.found->heads;
  std::vector<HeadId> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  figure::GridPanel panel = {fmt::format("{}: {}", circuit.label, members_text(circuit)),
                             std::vector<figure::GridHead>(order.size())};
  capture_maps(model, std::span(&prompt, 1), CaptureOptions::of(sorted, MapKind::kWeights),
               [&](std::span<const HeadMap> maps) {
                 for (const HeadMap& map : maps) {
                   const auto place = std::find(order.begin(), order.end(), map.head);
                   panel.heads[static_cast<std::size_t>(place - order.begin())] =
                       figure::grid_head(map.head, map.weights, map.length);
                 }
               });
  return panel;
}

}  // namespace

ExamplePrompt example_prompt(const CircuitsOfKind& circuits, Models models) {
  const auto first = std::find_if(circuits.begin(), circuits.end(),
                                  [](const ModelCircuit& circuit) { return circuit.found; });
  const ModelCircuit& leading = first == circuits.end() ? circuits[0] : *first;
  const std::vector<TaskPrompt>& prompts = leading.task.prompts.prompts;
  const auto answered = [&](const TaskPrompt& wanted) {
    for (std::size_t m = 0; m < models.size(); ++m) {
      if (!circuits[m].found) continue;
      const TaskPrompt* prompt = clean_prompt(circuits[m], wanted.text.clean);
      if (prompt == nullptr ||
          score(models[m].model(), {*prompt}, Metric::kAccuracy).clean[0] < 1.0)
        return false;
    }
    return true;
  };
  const bool several = models.size() > 1;
  for (std::size_t i = 0; i < std::min(prompts.size(), kMostExamples); ++i)
    if (answered(prompts[i]))
      return {prompts[i].text.clean, several
                                         ? (models.size() == 2 ? "the first that both models answer"
                                                               : "the first that all models answer")
                                         : "the first that the model answers"};
  return {prompts[0].text.clean, fmt::format("none of the first {} is answered by {}",
                                             std::min(prompts.size(), kMostExamples),
                                             several ? "every model" : "the model")};
}

std::optional<figure::CircuitCurves> curves_of(std::span<const CircuitsOfKind> kinds) {
  figure::CircuitCurves curves;
  std::string kept;
  for (const CircuitsOfKind& circuits : kinds) {
    const SearchOptions& options = circuits[0].options;
    figure::EffectChart chart = {.unit = std::string(plural_of(options.parts))};
    for (const ModelCircuit& circuit : circuits)
      if (circuit.found) chart.curves.push_back(effect_curve(circuit));
    if (chart.curves.empty()) continue;
    kept += fmt::format("{} kept {}, {}. ", capital(chart.unit), order_text(options),
                        others_text(options));
    for (const ModelCircuit& circuit : circuits)
      if (circuit.found && !circuit.carried())
        kept += fmt::format("They do not carry the task in {}. ", circuit.label);
    curves.charts.push_back(std::move(chart));
  }
  if (curves.charts.empty()) return std::nullopt;
  const ModelCircuit& first = kinds[0][0];
  curves.title = task_title(first.task);
  curves.level = first.options.level;
  curves.caption =
      fmt::format("{}At 0: none kept. Metric: {}, {}; bands: one standard error.", kept,
                  name_of(first.task.metric), counted(first.task.prompts.prompts.size(), "prompt"));
  return curves;
}

std::optional<figure::AttentionGrid> grid_of(const CircuitsOfKind& circuits, Models models) {
  require(circuits.size() == models.size(), "{} circuits are of as many models, not of {}",
          circuits.size(), models.size());
  figure::AttentionGrid grid;
  const LoadedTask& task = circuits[0].task;
  const ExamplePrompt example = example_prompt(circuits, models);
  const std::string& text = example.text;
  std::string metric;
  bool same_tokens = true;
  for (std::size_t m = 0; m < models.size(); ++m) {
    const ModelCircuit& circuit = circuits[m];
    if (!circuit.found || circuit.found->heads.empty()) continue;
    const Prompt prompt = example_for(circuit, models[m].tokenizer(), text);
    same_tokens = same_tokens && (grid.tokens.empty() || grid.tokens == prompt.tokens);
    grid.tokens = prompt.tokens;
    grid.panels.push_back(panel_of(models[m].model(), circuit, prompt));
    mark_strong_edges(grid.panels.back(), circuit, models[m].model(), text);
    metric += (metric.empty() ? "" : ", ") + metric_text(circuit, models[m].model(), text);
  }
  if (grid.panels.empty()) return std::nullopt;
  if (!same_tokens) grid.tokens.clear();
  grid.title = fmt::format(
      "Heads{} that explain {:g} % of the task {}",
      circuits[0].options.parts == Parts::kHeadsAndMlps ? " of the circuits of heads and MLPs" : "",
      100 * circuits[0].options.level, task_title(task));
  grid.prompt = fmt::format("Prompt: {} ({})", text, example.chosen);
  const std::size_t shared = align_heads(grid);
  grid.metric = fmt::format(
      "{} of this prompt (mean of {}): {}. The most important heads first{}. Framed and named: the "
      "edge of each head that this prompt needs most.",
      name_of(task.metric), task.prompts.prompts.size(), metric,
      shared == 0 ? "" : ", before them those of all models, at the same places");
  return grid;
}

std::optional<figure::CircuitDrawing> drawing_of(const CircuitsOfKind& circuits) {
  figure::CircuitDrawing drawing;
  std::string left_out;
  for (const ModelCircuit& circuit : circuits) {
    if (!circuit.found || circuit.found->graph.edges.empty()) continue;
    const std::size_t size = circuit.found->members.size();
    drawing.panels.push_back({fmt::format("{}: {}", circuit.label, counted(size, "edge")),
                              strongest_edges(circuit.found->graph, kMostDrawnEdges)});
    if (circuit.found->graph.edges.size() > kMostDrawnEdges)
      left_out +=
          fmt::format("{}{}: the {} strongest of {} are drawn", left_out.empty() ? " " : "; ",
                      circuit.label, kMostDrawnEdges, counted(size, "edge"));
  }
  if (drawing.panels.empty()) return std::nullopt;
  const LoadedTask& task = circuits[0].task;
  drawing.title = fmt::format("Edges that explain {:g} % of the task {}",
                              100 * circuits[0].options.level, task_title(task));
  const SearchOptions& options = circuits[0].options;
  drawing.score_label =
      options.method == Method::kExact
          ? fmt::format("drop of {}", name_of(task.metric))
          : fmt::format("{} score of {}", method_name(options.parts, options.method),
                        name_of(task.metric));
  drawing.caption = fmt::format("Score: {}, {}, corruption {}.{}{}",
                                circuits[0].options.method == Method::kExact ? "exact patches"
                                : circuits[0].options.method == Method::kAttribution
                                    ? "edge attribution patching"
                                    : "edge attribution patching with integrated gradients",
                                counted(task.prompts.prompts.size(), "prompt"),
                                task.prompts.corruption, left_out, left_out.empty() ? "" : ".");
  return drawing;
}

std::vector<DotFile> dots_of(const CircuitsOfKind& circuits) {
  std::vector<DotFile> files;
  for (const ModelCircuit& circuit : circuits) {
    if (!circuit.found || circuit.found->graph.edges.empty()) continue;
    const std::string title =
        fmt::format("{}: {} that explain {:g} % of the task {}", circuit.label,
                    counted(circuit.found->members.size(), "edge"), 100 * circuit.options.level,
                    task_title(circuit.task));
    std::string name = file_part(circuit.label);
    // Folders of one name differ in a number.
    const auto taken = [&](const std::string& wanted) {
      return std::any_of(files.begin(), files.end(),
                         [&](const DotFile& file) { return file.name == wanted; });
    };
    const std::string plain = name;
    for (int number = 2; taken(name); ++number) name = fmt::format("{}-{}", plain, number);
    files.push_back({name, circuit_dot(circuit.found->graph, title)});
  }
  return files;
}

std::string file_part(const std::string& name) {
  std::string part;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '_' || c == '-';
    if (plain)
      part += c;
    else if (!part.empty() && part.back() != '-')
      part += '-';
  }
  // A name that begins with a dot is hidden, and ".." is another folder.
  part.erase(0, part.find_first_not_of(".-"));
  return part.empty() ? "unnamed" : part;
}

std::string task_file_part(const LoadedTask& task) {
  return file_part(std::filesystem::path(task.prompts.task).stem().string());
}

}  // namespace filigree::study
