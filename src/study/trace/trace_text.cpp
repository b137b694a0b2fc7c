
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/table.h"
#include "filigree/names.h"
#include "filigree/trace_study.h"

namespace filigree::study {
namespace {

constexpr std::size_t kShownNodes = 12, kShownEdges = 12, kShownPairs = 6, kShownHeads = 10;

std::string quoted_position(const TracedModel& traced, std::int64_t position) {
  return fmt::format("{} '{}'", position, printable(traced.token_at(position)));
}

std::string prompt_line(const TracedModel& traced) {
  std::string text;
  for (std::int64_t p = 0; p < traced.frozen.positions; ++p)
    text += (p == 0 ? "" : "  ") + quoted_position(traced, p);
  return wrap(text, 98, 2);
}

std::string target_line(const TracedModel& traced) {
  std::string names;
  for (std::size_t t = 0; t < traced.targets.size(); ++t) {
    const GraphTarget& target = traced.targets[t];
    names += (names.empty() ? "" : ", ") +
             node_name(traced, traced.graph.first_target() + static_cast<std::int64_t>(t));
    if (target.of_layer < 0 && target.against < 0)
      names += fmt::format(" {}", percent(target.probability));
  }
  std::string text = fmt::format("explained: {}", names);
  if (traced.shortened)
    text += fmt::format(" (the first token of '{}')", printable(*traced.shortened));
  return text;
}

std::string graph_scores_text(const TracedModel& traced) {
  return fmt::format(
      "  graph     {} of {} active features, {} nodes and {} edges after pruning\n"
      "  scores    replacement {:.3f}, completeness {:.3f}; pruned {:.3f} and {:.3f}\n"
      "  row sums  within {:.1e} of the largest value\n",
      with_thousands(static_cast<std::uint64_t>(traced.graph.features)),
      with_thousands(static_cast<std::uint64_t>(traced.graph.active_features)),
      with_thousands(static_cast<std::uint64_t>(traced.pruned.count())),
      with_thousands(traced.pruned.edges.size()), traced.scores.replacement,
      traced.scores.completeness, traced.pruned.scores.replacement,
      traced.pruned.scores.completeness, traced.row_error);
}

std::string nodes_table(const TracedModel& traced) {
  std::vector<std::int64_t> nodes;
  for (const std::int64_t i : traced.pruned.nodes())
    if (i < traced.graph.sources()) nodes.push_back(i);
  std::stable_sort(nodes.begin(), nodes.end(), [&](std::int64_t a, std::int64_t b) {
    return traced.pruned.influence[static_cast<std::size_t>(a)] >
           traced.pruned.influence[static_cast<std::size_t>(b)];
  });
  Table table({{"node"},
               {"at"},
               {"influence", Align::kRight},
               {"activation", Align::kRight},
               {"on the first target", Align::kRight}});
  const float* effects = traced.graph.row(traced.graph.features);
  for (std::size_t i = 0; i < std::min(kShownNodes, nodes.size()); ++i) {
    const GraphNode& node = traced.graph.nodes[static_cast<std::size_t>(nodes[i])];
    table.add({node_name(traced, nodes[i]), quoted_position(traced, node.position),
               fmt::format("{:.4f}", traced.pruned.influence[static_cast<std::size_t>(nodes[i])]),
               node.kind == NodeKind::kFeature ? fmt::format("{:.3f}", node.activation) : "",
               fmt::format("{:+.4f}", effects[nodes[i]])});
  }
  return "\n  most influential nodes\n" + table.text(2);
}

std::string heads_of(const EdgeLoading& loading) {
  if (!loading.heads.defined()) return "";
  const std::vector<RankedHead> heads = ranked_heads(loading.heads);
  std::string text;
  for (std::size_t h = 0; h < std::min<std::size_t>(3, heads.size()); ++h)
    text += fmt::format("{}{} {:+.3f}", h == 0 ? "" : ", ",
                        head_name({heads[h].layer, heads[h].head}), heads[h].loading);
  return text;
}

std::string edges_table(const TracedModel& traced) {
  std::vector<std::size_t> order;
  for (std::size_t e = 0; e < traced.pruned.edges.size(); ++e) {
    const EffectEdge& edge = traced.pruned.edges[e];
    if (traced.graph.nodes[static_cast<std::size_t>(edge.source)].position <
        traced.graph.nodes[static_cast<std::size_t>(edge.target)].position)
      order.push_back(e);
  }
  if (order.empty()) return "";
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return traced.pruned.edges[a].influence > traced.pruned.edges[b].influence;
  });
  Table table({{"from"},
               {"to"},
               {"effect", Align::kRight},
               {"influence", Align::kRight},
               {"strongest heads"}});
  const auto name = [&](std::int64_t i) {
    return fmt::format(
        "{} @{}", node_name(traced, i),
        quoted_position(traced, traced.graph.nodes[static_cast<std::size_t>(i)].position));
  };
  for (std::size_t i = 0; i < std::min(kShownEdges, order.size()); ++i) {
    const EffectEdge& edge = traced.pruned.edges[order[i]];
    table.add({name(edge.source), name(edge.target), fmt::format("{:+.4f}", edge.effect),
               fmt::format("{:.4f}", edge.influence), heads_of(traced.loadings[order[i]])});
  }
  return fmt::format("\n  most influential edges between tokens, {} in all\n",
                     with_thousands(order.size())) +
         table.text(2);
}

std::string carried_pairs_table(const TracedModel& traced) {
  if (traced.pairs.empty()) return "\n  nothing is carried from token to token\n";
  Table table({{"key"},
               {"query"},
               {"influence", Align::kRight},
               {"edges", Align::kRight},
               {"one hop", Align::kRight},
               {"more hops", Align::kRight},
               {"heads for 80 %", Align::kRight}});
  for (std::size_t p = 0; p < std::min(kShownPairs, traced.pairs.size()); ++p) {
    const CarriedPair& pair = traced.pairs[p];
    table.add({quoted_position(traced, pair.loading.from), quoted_position(traced, pair.loading.to),
               fmt::format("{:.4f}", pair.influence), std::to_string(pair.loading.edges),
               fmt::format("{:.3f}", pair.loading.single),
               fmt::format("{:.3f}", pair.loading.several), std::to_string(pair.heads_for_80)});
  }
  return fmt::format("\n  carried from token to token: {} heads for 80 % of all {} pairs\n",
                     traced.heads_for_80, traced.pairs.size()) +
         table.text(2);
}

std::string layers_of(const Modulation& modulation) {
  return modulation.first_layer == modulation.last_layer
             ? fmt::format("layer {}", modulation.first_layer)
             : fmt::format("layers {}-{}", modulation.first_layer, modulation.last_layer);
}

std::string modulated_text(const TracedModel& traced, const std::vector<Modulation>& modulations,
                           std::size_t most) {
  std::string text;
  for (std::size_t m = 0; m < std::min(most, modulations.size()); ++m)
    text += fmt::format("{}{} {} ({})", m == 0 ? "" : ", ",
                        quoted_position(traced, modulations[m].position),
                        percent(modulations[m].share), layers_of(modulations[m]));
  if (modulations.size() > most) text += fmt::format(" and {} more", modulations.size() - most);
  return text;
}

std::string pair_text(const TracedModel& traced) {
  if (!traced.pair || traced.carrying.empty()) return "";
  const PairLoading& loading = traced.pair->loading;
  std::string text = fmt::format(
      "\n  key {} to query {}: {} of {} heads carry 80 %\n", quoted_position(traced, loading.from),
      quoted_position(traced, loading.to), traced.pair->heads_for_80, traced.pair->heads.size());
  std::vector<Table::Column> columns = {{"head"},
                                        {"loading", Align::kRight},
                                        {"share", Align::kRight},
                                        {"attention", Align::kRight},
                                        {"score", Align::kRight}};
  columns.push_back(traced.gated() ? Table::Column{"gate logit", Align::kRight}
                                   : Table::Column{"above the row", Align::kRight});
  columns.push_back({"modulated at 80 % by"});
  Table table(columns);
  for (std::size_t h = 0; h < std::min(kShownHeads, traced.carrying.size()); ++h) {
    const CarryingHead& head = traced.carrying[h];
    table.add({head_name({head.cell.layer, head.cell.head}), fmt::format("{:+.4f}", head.loading),
               percent(head.share), fmt::format("{:.3f}", head.weight),
               fmt::format("{:.3f}", head.score),
               fmt::format("{:+.3f}", head.gate_logit.value_or(head.relative_score)),
               modulated_text(traced, head.modulated_by, 2)});
  }
  text += table.text(2);
  if (traced.carrying.size() > kShownHeads)
    text += fmt::format("  and {} more\n", traced.carrying.size() - kShownHeads);
  return text + "  " +
         wrap(fmt::format("all of them are modulated at 80 % by {}",
                          modulated_text(traced, traced.modulated_by, 8)),
              98, 2) +
         "\n";
}

std::string comparison_text(const TraceResult& result) {
  std::vector<Table::Column> columns = {{""}};
  for (const TracedModel& traced : result.models) columns.push_back({traced.label, Align::kRight});
  Table table(columns);
  const auto row = [&](const std::string& name, const auto& value) {
    std::vector<std::string> cells = {name};
    for (const TracedModel& traced : result.models) cells.push_back(value(traced));
    table.add(std::move(cells));
  };
  using Traced = TracedModel;
  row("active features", [](const Traced& t) { return std::to_string(t.graph.active_features); });
  row("nodes after pruning", [](const Traced& t) { return std::to_string(t.pruned.count()); });
  row("edges after pruning", [](const Traced& t) { return std::to_string(t.pruned.edges.size()); });
  row("replacement score",
      [](const Traced& t) { return fmt::format("{:.3f}", t.scores.replacement); });
  row("completeness score",
      [](const Traced& t) { return fmt::format("{:.3f}", t.scores.completeness); });
  row("heads for 80 % of all pairs",
      [](const Traced& t) { return std::to_string(t.heads_for_80); });
  row("heads for 80 % of the pair", [](const Traced& t) {
    return t.pair ? fmt::format("{} ({} to {})", t.pair->heads_for_80, t.pair->loading.from,
                                t.pair->loading.to)
                  : std::string("none");
  });
  return "side by side\n" + table.text(2);
}

std::string validation_text(const TracedModel& traced, const TraceValidation& validation) {
  Table table({{"ablated"},
               {"at"},
               {"influence", Align::kRight},
               {"predicted", Align::kRight},
               {"with features", Align::kRight},
               {"constrained", Align::kRight},
               {"frozen", Align::kRight},
               {"free", Align::kRight}});
  for (std::size_t i = 0; i < std::min(kShownNodes, validation.features.size()); ++i) {
    const AblatedFeature& f = validation.features[i];
    table.add(
        {node_name(traced, f.node),
         quoted_position(traced, traced.graph.nodes[static_cast<std::size_t>(f.node)].position),
         fmt::format("{:.4f}", f.influence), fmt::format("{:+.3f}", f.direct),
         fmt::format("{:+.3f}", f.total), fmt::format("{:+.3f}", f.measured[0]),
         fmt::format("{:+.3f}", f.measured[1]), fmt::format("{:+.3f}", f.measured[2])});
  }
  const auto three = [](const std::array<double, kRunModes>& values) {
    return fmt::format("constrained {:.2f}, attention frozen {:.2f}, free {:.2f}", values[0],
                       values[1], values[2]);
  };
  return fmt::format(
      "\n  {} features ablated one by one: change of the target\n{}"
      "  rank correlation of influence and effect: {}\n"
      "  of the graph's prediction and effect: {}\n"
      "  all at once: predicted {:+.3f}; {}\n"
      "  {} heads ablated, attention otherwise frozen: rank correlation of loading and effect "
      "{:.2f}\n",
      validation.features.size(), table.text(2), three(validation.influence_correlation),
      three(validation.total_correlation), validation.group_direct,
      three(validation.group_measured), validation.heads.size(), validation.head_correlation);
}

std::string estimate_with(const Estimate& value, int digits) {
  return value.error ? fmt::format("{:.{}f} +- {:.{}f}", value.mean, digits, *value.error, digits)
                     : fmt::format("{:.{}f}", value.mean, digits);
}

}  // namespace

std::string text_of(const TaskTraceResult& result) {
  std::vector<Table::Column> columns = {{result.task}};
  for (const TracedTask& task : result.models) columns.push_back({task.label, Align::kRight});
  Table table(columns);
  const auto row = [&](const std::string& name, const auto& value) {
    std::vector<std::string> cells = {name};
    for (const TracedTask& task : result.models) cells.push_back(value(task));
    table.add(std::move(cells));
  };
  using Task = TracedTask;
  row("prompts", [](const Task& t) { return std::to_string(t.prompts); });
  row("answered rightly", [](const Task& t) { return std::to_string(t.correct); });
  row("heads for 80 % of the pair",
      [](const Task& t) { return estimate_with(t.pair_heads_for_80, 1); });
  row("heads for 80 % of all pairs",
      [](const Task& t) { return estimate_with(t.heads_for_80, 1); });
  row("nodes", [](const Task& t) { return estimate_with(t.nodes, 0); });
  row("edges", [](const Task& t) { return estimate_with(t.edges, 0); });
  row("replacement score", [](const Task& t) { return estimate_with(t.replacement, 3); });
  row("completeness score", [](const Task& t) { return estimate_with(t.completeness, 3); });
  row("carried over one hop", [](const Task& t) { return estimate_with(t.single_share, 2); });
  if (result.request.trace.validated > 0) {
    row("influence and effect, rank correlation",
        [](const Task& t) { return estimate_with(t.influence_correlation, 2); });
    row("prediction and effect, rank correlation",
        [](const Task& t) { return estimate_with(t.predicted_correlation, 2); });
  }
  std::string text = table.text(0);
  for (const TracedTask& task : result.models) {
    std::string pairs, heads, curve;
    for (std::size_t p = 0; p < std::min<std::size_t>(4, task.pairs.size()); ++p)
      pairs +=
          fmt::format("{}{} ({})", p == 0 ? "" : ", ", task.pairs[p].first, task.pairs[p].second);
    for (std::size_t h = 0; h < std::min(kShownHeads, task.heads.size()); ++h)
      heads += fmt::format("{}{} {}", h == 0 ? "" : ", ", head_name(task.heads[h].head),
                           percent(task.heads[h].share.mean));
    for (const auto& [share, count] : task.curve)
      if (std::abs(share * 10 - std::round(share * 10)) < 1e-6 && share > 0.45)
        curve +=
            fmt::format("{}{:.1f} for {:.0f} %", curve.empty() ? "" : ", ", count, 100 * share);
    text += fmt::format("\n{}\n  pairs     {}\n  heads     {}\n  needed    {}\n",
                        printable(task.label), wrap(pairs, 98, 12), wrap(heads, 98, 12), curve);
    Table shared(
        {{"shared feature"}, {"at"}, {"prompts", Align::kRight}, {"influence", Align::kRight}});
    for (std::size_t f = 0; f < std::min(kShownNodes, task.shared.size()); ++f)
      shared.add({feature_name(task.shared[f].feature), task.shared[f].role,
                  percent(task.shared[f].prompts),
                  fmt::format("{:.4f}", task.shared[f].influence)});
    text += shared.text(2);
  }
  return text;
}

std::string text_of(const TraceResult& result) {
  std::string text;
  for (std::size_t m = 0; m < result.models.size(); ++m) {
    const TracedModel& traced = result.models[m];
    text += fmt::format("{}{}, features {}\n  {}\n  {}\n\n", text.empty() ? "" : "\n",
                        printable(traced.label), printable(traced.features), prompt_line(traced),
                        target_line(traced));
    text += graph_scores_text(traced) + nodes_table(traced) + edges_table(traced) +
            carried_pairs_table(traced) + pair_text(traced);
    if (m < result.validations.size()) text += validation_text(traced, result.validations[m]);
  }
  if (result.models.size() > 1) text += "\n" + comparison_text(result);
  return text;
}

}  // namespace filigree::study
