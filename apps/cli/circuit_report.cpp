#include "apps/cli/circuit_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/cli/table.h"
#include "base/strings.h"

namespace filigree::cli {
namespace {

std::string size_text(const ModelCircuit& circuit) {
  if (!circuit.curve) return "none claimed";
  const std::optional<std::size_t> size = circuit.size();
  return size ? std::to_string(*size) : "level not reached";
}

// How many times smaller than the first model's.
std::string ratio_text(const ModelCircuit& first, const ModelCircuit& circuit) {
  const std::optional<std::size_t> a = first.size(), b = circuit.size();
  if (&first == &circuit || !a || !b || *b == 0) return "";
  return fmt::format("{:.2f}x", static_cast<double>(*a) / static_cast<double>(*b));
}

std::string sizes_table(const std::vector<ModelCircuit>& circuits) {
  Table table({{"model"},
               {"accuracy", Align::kRight},
               {std::string(name_of(circuits[0].task.metric)) + " clean", Align::kRight},
               {"corrupt", Align::kRight},
               {fmt::format("heads for {:g} %", 100 * circuits[0].level), Align::kRight},
               {"of", Align::kRight},
               {"area", Align::kRight},
               {"ratio", Align::kRight}});
  for (const ModelCircuit& circuit : circuits)
    table.add({printable(circuit.label),
               fmt::format("{:.1f} %", 100 * circuit.check.clean_accuracy),
               estimate_text(circuit.check.clean), estimate_text(circuit.check.corrupt),
               size_text(circuit), circuit.curve ? std::to_string(circuit.curve->order.size()) : "",
               circuit.curve ? fmt::format("{:.3f}", circuit.curve->area()) : "",
               ratio_text(circuits[0], circuit)});
  return table.text();
}

std::string heads_table(const ModelCircuit& circuit, std::size_t top) {
  Table table({{"", Align::kRight},
               {"head"},
               {"drop without it", Align::kRight},
               {"effect of these", Align::kRight}});
  const std::vector<std::size_t> order = circuit.importance->order();
  for (std::size_t i = 0; i < std::min(top, order.size()); ++i) {
    std::string effect;
    for (const CurvePoint& point : circuit.curve->points)
      if (point.kept == i + 1) effect = fmt::format("{:.1f} %", 100 * point.effect);
    table.add({std::to_string(i + 1), text_of(circuit.importance->targets[order[i]]),
               estimate_text(circuit.importance->of(order[i])), effect});
  }
  return table.text(2);
}

}  // namespace

std::string circuit_text(const std::vector<ModelCircuit>& circuits, std::size_t top) {
  std::string text =
      fmt::format("{}: {}, corruption {}\n\n", printable(circuits[0].task.prompts.task),
                  circuits[0].task.description, circuits[0].task.prompts.corruption);
  text += sizes_table(circuits);
  for (const ModelCircuit& circuit : circuits) {
    text += fmt::format("\n{}\n", printable(circuit.label));
    text += dropped_text(circuit.task.prompts) + verdict_text(circuit.check);
    if (circuit.curve) text += "\n" + heads_table(circuit, top);
  }
  return text;
}

Json circuit_json(const ModelCircuit& circuit) {
  Json json = {{"model", circuit.model},
               {"fit", dropped_json(circuit.task.prompts)},
               {"check", check_json(circuit.check)},
               {"level", circuit.level},
               {"size", nullptr}};
  if (!circuit.curve) return json;
  if (const std::optional<std::size_t> size = circuit.size()) json["size"] = *size;
  json["parts"] = circuit.curve->order.size();
  json["area"] = circuit.curve->area();
  Json heads = Json::array();
  for (const std::size_t i : circuit.importance->order()) {
    const PatchTarget& target = circuit.importance->targets[i];
    const Estimate drop = circuit.importance->of(i);
    heads.push_back({{"head", text_of(target)},
                     {"layer", target.layer},
                     {"index", target.head},
                     {"drop", drop.mean},
                     {"standard_error", drop.error}});
  }
  json["heads"] = heads;
  Json curve = Json::array();
  for (const CurvePoint& point : circuit.curve->points)
    curve.push_back({{"kept", point.kept},
                     {"metric", point.metric},
                     {"effect", point.effect},
                     {"standard_error", point.error}});
  json["curve"] = curve;
  return json;
}

}  // namespace filigree::cli
