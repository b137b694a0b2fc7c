
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/table.h"
#include "filigree/circuit_study.h"
#include "filigree/names.h"

namespace filigree::study {

namespace {

constexpr std::size_t kMembersShown = 40;

std::string count_text(const FoundCircuit& found) {
  const auto whole = static_cast<std::uint64_t>(found.part_count);
  return static_cast<double>(whole) == found.part_count ? with_thousands(whole)
                                                        : fmt::format("{:.1f}", found.part_count);
}

std::string sizes_table(const CircuitsOfKind& circuits) {
  const SearchOptions& options = circuits[0].options;
  Table table(
      {{"model"},
       {"accuracy", Align::kRight},
       {std::string(name_of(circuits[0].task.metric)) + " clean", Align::kRight},
       {"corrupt", Align::kRight},
       {"none kept", Align::kRight},
       {fmt::format("{} for {:g} %", plural_of(options.parts), 100 * options.level), Align::kRight},
       {"of", Align::kRight},
       {"area", Align::kRight},
       {"ratio", Align::kRight}});
  for (const ModelCircuit& circuit : circuits)
    table.add({printable(circuit.label),
               fmt::format("{:.1f} %", 100 * circuit.check.clean_accuracy),
               estimate_text(circuit.check.clean), estimate_text(circuit.check.corrupt),
               none_kept_text(circuit), size_text(circuit),
               circuit.found ? count_text(*circuit.found) : "",
               circuit.found ? fmt::format("{:.3f}", circuit.found->curve.area()) : "",
               ratio_text(circuits[0], circuit)});
  return table.text();
}

// Why nothing is claimed of parts that the task does without.
std::string carried_text(const ModelCircuit& circuit) {
  if (!circuit.found || circuit.carried()) return "";
  const SearchOptions& options = circuit.options;
  std::string text = fmt::format(
      "The {} do NOT carry this task: with none of them kept {} of the effect is there, and a "
      "circuit is claimed below {:g} % only.",
      plural_of(options.parts), none_kept_text(circuit),
      100 * std::min(kMostWithoutParts, options.level));
  if (options.parts == Parts::kHeads)
    text += " --parts heads+mlps or edges ask the rest of the model too.";
  if (options.parts == Parts::kAttentionEdges && options.replacement == Replacement::kCorrupt)
    text +=
        " The corrupt maps look where the clean ones do; --replacement zero asks which edges "
        "carry something.";
  return text + "\n";
}

std::string parts_table(const ModelCircuit& circuit, std::size_t top) {
  const FoundCircuit& found = *circuit.found;
  const bool cells = circuit.options.parts == Parts::kAttentionEdges;
  Table table({{"", Align::kRight},
               {"part"},
               {score_title(circuit.options), Align::kRight},
               {cells ? "" : "effect of these", Align::kRight}});
  for (std::size_t i = 0; i < std::min(top, found.parts.size()); ++i) {
    std::string effect;
    for (const CurvePoint& point : found.curve.points)
      if (!cells && point.kept == i + 1) effect = fmt::format("{:.1f} %", 100 * point.effect);
    table.add(
        {std::to_string(i + 1), found.parts[i].name, estimate_text(found.parts[i].score), effect});
  }
  return table.text(2);
}

// The circuit itself, where it is small enough to read.
std::string listed_members(const ModelCircuit& circuit) {
  const std::vector<std::string>& members = circuit.found->members;
  if (members.empty()) return "";
  std::string text = "  circuit:";
  for (std::size_t i = 0; i < std::min(members.size(), kMembersShown); ++i)
    text += (i == 0 ? " " : ", ") + members[i];
  if (members.size() > kMembersShown)
    text += fmt::format(" and {} more", members.size() - kMembersShown);
  return text + "\n";
}

// Estimates rank parts; how much is lost without one only a run tells.
std::string estimate_note(const SearchOptions& options) {
  if (options.method == Method::kExact) return "";
  return fmt::format("  {} estimates the drop from gradients; --method exact measures it\n",
                     method_name(options.parts, options.method));
}

std::string_view name_of_method(const ModelCircuit& circuit) {
  return method_name(circuit.options.parts, circuit.options.method);
}

// The circuits of one model by each method, and how alike the methods order the parts.
std::string agreement_of_methods(const std::vector<ModelCircuit>& by_method) {
  const SearchOptions& options = by_method[0].options;
  std::vector<Table::Column> columns = {
      {"method"},
      {fmt::format("{} for {:g} %", plural_of(options.parts), 100 * options.level), Align::kRight},
      {"of", Align::kRight},
      {"area", Align::kRight}};
  for (const ModelCircuit& circuit : by_method)
    columns.push_back({fmt::format("ranks as {}", name_of_method(circuit)), Align::kRight});
  Table table(columns);
  for (const ModelCircuit& circuit : by_method) {
    std::vector<std::string> row = {std::string(name_of_method(circuit)), size_text(circuit),
                                    count_text(*circuit.found),
                                    fmt::format("{:.3f}", circuit.found->curve.area())};
    for (const ModelCircuit& other : by_method)
      row.push_back(fmt::format("{:.3f}", rank_correlation(circuit, other).value_or(0)));
    table.add(row);
  }
  return table.text(2) + "  ranks as: Spearman's correlation of the absolute scores of all parts\n";
}

// The first method's strongest parts, and what the others make of them: score and rank.
std::string scores_by_method(const std::vector<ModelCircuit>& by_method, std::size_t top) {
  std::vector<Table::Column> columns = {{"", Align::kRight}, {"part"}};
  std::vector<std::map<std::string, std::pair<std::size_t, double>>> scores;
  for (const ModelCircuit& circuit : by_method) {
    columns.push_back({score_title(circuit.options), Align::kRight});
    columns.push_back({"rank", Align::kRight});
    std::vector<const CircuitPart*> order;
    for (const CircuitPart& part : circuit.found->parts) order.push_back(&part);
    std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
      return std::abs(a->score.mean) > std::abs(b->score.mean);
    });
    auto& ranks = scores.emplace_back();
    for (std::size_t i = 0; i < order.size(); ++i)
      ranks[order[i]->name] = {i + 1, order[i]->score.mean};
  }
  std::map<std::size_t, std::string> first;
  for (const auto& [name, score] : scores[0])
    if (score.first <= top) first[score.first] = name;
  Table table(columns);
  for (const auto& [rank, name] : first) {
    std::vector<std::string> row = {std::to_string(rank), name};
    for (const auto& ranks : scores) {
      const auto found = ranks.find(name);
      row.push_back(found == ranks.end() ? "" : fmt::format("{:.3f}", found->second.second));
      row.push_back(found == ranks.end() ? "" : std::to_string(found->second.first));
    }
    table.add(row);
  }
  return table.text(2);
}

std::string agreement_text(const FoundCircuit& found) {
  if (!found.agreement) return "";
  const Agreement& a = *found.agreement;
  return fmt::format(
      "  published circuit ({}): {} of its {} parts are among the {} found: precision {:.2f}, "
      "recall {:.2f}; area under the ROC curve {:.3f}\n",
      found.published->source, a.common, a.published, a.kept, a.precision, a.recall, a.area);
}

}  // namespace

std::string size_text(const ModelCircuit& circuit) {
  if (!circuit.found) return "none claimed";
  if (!circuit.carried()) return "not carried";
  const std::optional<std::size_t> size = circuit.size();
  return size ? with_thousands(*size) : "level not reached";
}

std::string none_kept_text(const ModelCircuit& circuit) {
  if (!circuit.found) return "";
  const double effect = circuit.found->empty_circuit().effect;
  return fmt::format("{:.1f} %", std::abs(effect) < 5e-4 ? 0.0 : 100 * effect);  // no "-0.0"
}

std::string ratio_text(const ModelCircuit& first, const ModelCircuit& circuit) {
  const std::optional<double> ratio = size_ratio(first, circuit);
  return &first == &circuit || !ratio ? "" : fmt::format("{:.2f}x", *ratio);
}

std::string text_of(const CircuitsOfKind& circuits, std::size_t top) {
  std::string text =
      fmt::format("{}: {}, corruption {}\n\n", printable(circuits[0].task.prompts.task),
                  circuits[0].task.description, circuits[0].task.prompts.corruption);
  text += sizes_table(circuits);
  for (const ModelCircuit& circuit : circuits) {
    text += fmt::format("\n{}\n", printable(circuit.label));
    const TaskPrompts& prompts = circuit.task.prompts;
    text += dropped_text(prompts) + verdict_text(circuit.check, prompts) + carried_text(circuit);
    if (!circuit.found) continue;
    text += "\n" + parts_table(circuit, top);
    const std::string more =
        estimate_note(circuit.options) + listed_members(circuit) + agreement_text(*circuit.found);
    if (!more.empty()) text += "\n" + more;
  }
  return text;
}

std::string methods_text(const std::vector<CircuitsOfKind>& methods, std::size_t top) {
  const SearchOptions& options = methods[0][0].options;
  const LoadedTask& task = methods[0][0].task;
  std::string text = fmt::format("{}: {}, corruption {}; {} by {} methods\n",
                                 printable(task.prompts.task), task.description,
                                 task.prompts.corruption, plural_of(options.parts), methods.size());
  for (std::size_t m = 0; m < methods[0].size(); ++m) {
    std::vector<ModelCircuit> of_model;
    for (const CircuitsOfKind& circuits : methods) of_model.push_back(circuits[m]);
    text += fmt::format("\n{}\n", printable(of_model[0].label)) +
            dropped_text(of_model[0].task.prompts) +
            verdict_text(of_model[0].check, of_model[0].task.prompts);
    if (!of_model[0].found) continue;
    text += carried_text(of_model[0]) + "\n" + agreement_of_methods(of_model) + "\n" +
            scores_by_method(of_model, top);
  }
  return text;
}

std::string text_of(const TaskCircuits& found) {
  std::vector<Table::Column> columns = {{"model"}, {"accuracy", Align::kRight}};
  for (const CircuitsOfKind& circuits : found.kinds) {
    columns.push_back({std::string(plural_of(circuits[0].options.parts)), Align::kRight});
    columns.push_back({"none kept", Align::kRight});
    columns.push_back({"ratio", Align::kRight});
  }
  Table table(columns);
  for (std::size_t m = 0; m < found.kinds[0].size(); ++m) {
    const ModelCircuit& model = found.kinds[0][m];
    std::vector<std::string> row = {printable(model.label),
                                    fmt::format("{:.1f} %", 100 * model.check.clean_accuracy)};
    for (const CircuitsOfKind& circuits : found.kinds) {
      row.push_back(size_text(circuits[m]));
      row.push_back(none_kept_text(circuits[m]));
      row.push_back(ratio_text(circuits[0], circuits[m]));
    }
    table.add(row);
  }
  return fmt::format("{}: {}; parts for {:g} % of the effect\n",
                     printable(found.task().prompts.task), found.task().description,
                     100 * found.kinds[0][0].options.level) +
         table.text();
}

}  // namespace filigree::study
