#include "apps/cli/circuits/circuit_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/cli/program/table.h"
#include "filigree/base/strings.h"

namespace filigree::cli {
namespace {

constexpr std::size_t kMembersShown = 40;

std::string count_text(const FoundCircuit& found) {
  const auto whole = static_cast<std::uint64_t>(found.part_count);
  return static_cast<double>(whole) == found.part_count ? with_thousands(whole)
                                                        : fmt::format("{:.1f}", found.part_count);
}

std::string sizes_table(const std::vector<ModelCircuit>& circuits) {
  const SearchOptions& options = circuits[0].options;
  Table table(
      {{"model"},
       {"accuracy", Align::kRight},
       {std::string(name_of(circuits[0].task.metric)) + " clean", Align::kRight},
       {"corrupt", Align::kRight},
       {fmt::format("{} for {:g} %", plural_of(options.parts), 100 * options.level), Align::kRight},
       {"of", Align::kRight},
       {"area", Align::kRight},
       {"ratio", Align::kRight}});
  for (const ModelCircuit& circuit : circuits)
    table.add({printable(circuit.label),
               fmt::format("{:.1f} %", 100 * circuit.check.clean_accuracy),
               estimate_text(circuit.check.clean), estimate_text(circuit.check.corrupt),
               size_text(circuit), circuit.found ? count_text(*circuit.found) : "",
               circuit.found ? fmt::format("{:.3f}", circuit.found->curve.area()) : "",
               ratio_text(circuits[0], circuit)});
  return table.text();
}

std::string parts_table(const ModelCircuit& circuit, std::size_t top) {
  const FoundCircuit& found = *circuit.found;
  const bool cells = circuit.options.parts == Parts::kAttentionEdges;
  Table table({{"", Align::kRight},
               {"part"},
               {"drop without it", Align::kRight},
               {cells ? "" : "effect of these", Align::kRight}});
  for (std::size_t i = 0; i < std::min(top, found.parts.size()); ++i) {
    std::string effect;
    for (const CurvePoint& point : found.curve.points)
      if (!cells && point.kept == i + 1) effect = fmt::format("{:.1f} %", 100 * point.effect);
    table.add(
        {std::to_string(i + 1), found.parts[i].name, estimate_text(found.parts[i].drop), effect});
  }
  return table.text(2);
}

// The circuit itself, where it is small enough to read.
std::string members_text(const ModelCircuit& circuit) {
  const std::vector<std::string>& members = circuit.found->members;
  if (members.empty()) return "";
  std::string text = "  circuit:";
  for (std::size_t i = 0; i < std::min(members.size(), kMembersShown); ++i)
    text += (i == 0 ? " " : ", ") + members[i];
  if (members.size() > kMembersShown)
    text += fmt::format(" and {} more", members.size() - kMembersShown);
  return text + "\n";
}

// Cells say where heads look; where both prompts make them look alike, the values do the work.
std::string hint_text(const ModelCircuit& circuit) {
  if (circuit.options.parts != Parts::kAttentionEdges || circuit.size() != 0u ||
      circuit.options.replacement != Replacement::kCorrupt)
    return "";
  return "  no attention edge is needed: the corrupt maps look where the clean ones do; "
         "--replacement "
         "zero\n  asks which edges carry something\n";
}

std::string agreement_text(const FoundCircuit& found) {
  if (!found.agreement) return "";
  const Agreement& a = *found.agreement;
  return fmt::format(
      "  published circuit ({}): {} of its {} parts are among the {} found: precision {:.2f}, "
      "recall {:.2f}; area under the ROC curve {:.3f}\n",
      found.published->source, a.common, a.published, a.kept, a.precision, a.recall, a.area);
}

Json scores_json(const FoundCircuit& found) {
  Json scores = Json::array();
  for (const CircuitPart& part : found.parts) {
    Json entry = {{"part", part.name}};
    entry.update(part.place);
    entry["drop"] = part.drop.mean;
    entry["standard_error"] = part.drop.error;
    scores.push_back(std::move(entry));
  }
  return scores;
}

// Of each prompt: layer, head, query, key, drop.
Json cells_json(const CellScores& scores) {
  Json prompts = Json::array();
  for (const CellScores::OfPrompt& prompt : scores.prompts) {
    Json cells = Json::array();
    for (std::size_t i = 0; i < prompt.cells.size(); ++i) {
      const AttentionCell& cell = prompt.cells[i];
      cells.push_back({cell.layer, cell.head, cell.query, cell.key, prompt.drops[i]});
    }
    prompts.push_back(std::move(cells));
  }
  return prompts;
}

}  // namespace

Json size_ratio(const ModelCircuit& first, const ModelCircuit& circuit) {
  const std::optional<std::size_t> a = first.size(), b = circuit.size();
  if (!a || !b || *b == 0) return nullptr;
  return static_cast<double>(*a) / static_cast<double>(*b);
}

std::string size_text(const ModelCircuit& circuit) {
  if (!circuit.found) return "none claimed";
  const std::optional<std::size_t> size = circuit.size();
  return size ? with_thousands(*size) : "level not reached";
}

std::string ratio_text(const ModelCircuit& first, const ModelCircuit& circuit) {
  const Json ratio = size_ratio(first, circuit);
  return &first == &circuit || ratio.is_null() ? "" : fmt::format("{:.2f}x", ratio.get<double>());
}

std::string circuit_text(const std::vector<ModelCircuit>& circuits, std::size_t top) {
  std::string text =
      fmt::format("{}: {}, corruption {}\n\n", printable(circuits[0].task.prompts.task),
                  circuits[0].task.description, circuits[0].task.prompts.corruption);
  text += sizes_table(circuits);
  for (const ModelCircuit& circuit : circuits) {
    text += fmt::format("\n{}\n", printable(circuit.label));
    text += dropped_text(circuit.task.prompts) + verdict_text(circuit.check);
    if (!circuit.found) continue;
    text += "\n" + parts_table(circuit, top);
    const std::string more =
        members_text(circuit) + hint_text(circuit) + agreement_text(*circuit.found);
    if (!more.empty()) text += "\n" + more;
  }
  return text;
}

Json circuits_json(const std::vector<ModelCircuit>& circuits, Scores scores) {
  Json models = Json::array();
  for (const ModelCircuit& circuit : circuits) {
    models.push_back(circuit_json(circuit, scores));
    models.back()["ratio"] = size_ratio(circuits[0], circuit);
  }
  const SearchOptions& options = circuits[0].options;
  const bool integrated = options.method == Method::kIntegrated;
  return {{"task", circuits[0].task.prompts.task},
          {"corruption", circuits[0].task.prompts.corruption},
          {"metric", name_of(circuits[0].task.metric)},
          {"kind", name_of(options.parts)},
          {"method", name_of(options.method)},
          {"steps", integrated ? Json(options.steps) : Json()},
          {"selection", name_of(options.selection)},
          {"replacement", name_of(options.replacement)},
          {"models", models}};
}

Json circuit_json(const ModelCircuit& circuit, Scores wanted) {
  Json json = {{"model", circuit.model},
               {"fit", dropped_json(circuit.task.prompts)},
               {"check", check_json(circuit.check)},
               {"level", circuit.options.level},
               {"size", nullptr}};
  if (!circuit.found) return json;
  const FoundCircuit& found = *circuit.found;
  if (const std::optional<std::size_t> size = circuit.size()) json["size"] = *size;
  json["parts"] = found.part_count;
  json["area"] = found.curve.area();
  if (circuit.options.parts != Parts::kAttentionEdges) json["circuit"] = found.members;
  if (found.agreement) {
    const Agreement& a = *found.agreement;
    json["published"] = {{"source", found.published->source},
                         {"parts", a.published},
                         {"kept", a.kept},
                         {"common", a.common},
                         {"precision", a.precision},
                         {"recall", a.recall},
                         {"roc_area", a.area}};
  }
  if (wanted == Scores::kEvery) {
    json["scores"] = scores_json(found);
    if (found.cells) json["scores_by_prompt"] = cells_json(*found.cells);
  }
  Json curve = Json::array();
  for (const CurvePoint& point : found.curve.points)
    curve.push_back({{"kept", point.kept},
                     {"parts", point.parts},
                     {"metric", point.metric},
                     {"effect", point.effect},
                     {"standard_error", point.error}});
  json["curve"] = curve;
  return json;
}

}  // namespace filigree::cli
