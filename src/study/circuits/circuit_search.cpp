#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "analyze/circuit/edge_circuit.h"
#include "analyze/circuit/pass_limits.h"
#include "filigree/circuit_study.h"
#include "filigree/error.h"
#include "filigree/version.h"
#include "study/circuits/patch_progress.h"

namespace filigree::study {
namespace {

class Search {
 public:
  Search(const Model& model, const LoadedTask& task, const SearchOptions& options,
         const std::string& label, SweepSection* section, const Context& context)
      : model_(model),
        task_(task),
        prompts_(task.prompts.prompts),
        options_(options),
        label_(label),
        context_(context) {
    patch_.metric = task.metric;
    patch_.replacement = options.replacement;
    patch_.state = section;
    found_.published = published_circuit(task.prompts.task, model.config());
  }

  FoundCircuit run() {
    switch (options_.parts) {
      case Parts::kEdges: edges(); break;
      case Parts::kAttentionEdges: attention_edges(); break;
      default: heads(); break;
    }
    return std::move(found_);
  }

 private:
  PatchOptions scoring() const { return watched(patch_, label_ + " scores", context_); }
  PatchOptions choosing() const { return watched(patch_, label_ + " selection", context_); }
  PatchOptions keeping() const {
    PatchOptions options = watched(patch_, label_ + " curve", context_);
    if (context_.point)
      options.point = [this](std::size_t kept, double effect) {
        context_.point(label_, static_cast<double>(kept), effect);
      };
    return options;
  }
  int steps() const { return options_.method == Method::kIntegrated ? options_.steps : 0; }

  // The circuit at the level; null where the level is not reached or the parts do not carry the
  // task.
  const CurvePoint* circuit_point(const Curve& curve) {
    const double without = curve.points.front().effect;
    found_.carried = without < std::min(kMostWithoutParts, options_.level);
    return found_.carried ? curve.at(options_.level) : nullptr;
  }

  void heads() {
    std::vector<PatchTarget> targets = all_heads(model_.config());
    if (options_.parts == Parts::kHeadsAndMlps)
      for (const PatchTarget& mlp : all_mlps(model_.config())) targets.push_back(mlp);
    const Importance importance =
        options_.method == Method::kExact
            ? exact_importance(model_, prompts_, targets, scoring())
            : attributed_importance(model_, prompts_, targets, steps(), scoring());
    std::vector<PatchTarget> order;
    if (options_.selection == Selection::kTop) {
      for (const std::size_t i : importance.order()) order.push_back(targets[i]);
    } else {
      order = greedy_order(
          model_, prompts_, importance,
          options_.selection == Selection::kGreedy ? Greedy::kRemoval : Greedy::kAddition,
          options_.candidates, choosing());
    }
    std::vector<std::size_t> sizes;
    if (!options_.every_size) sizes = spread_sizes(order.size());
    // The order is here already. NOLINTNEXTLINE(cppcoreguidelines-slicing)
    found_.curve = keep_first(model_, prompts_, order, std::move(sizes), keeping(), options_.level);
    found_.part_count = static_cast<double>(order.size());
    std::vector<double> scores;
    for (const PatchTarget& target : order) {
      const auto index = static_cast<std::size_t>(
          std::find(targets.begin(), targets.end(), target) - targets.begin());
      const Estimate score = importance.of(index);
      scores.push_back(std::abs(score.mean));
      found_.parts.push_back({text_of(target), score, target});
    }
    std::vector<PatchTarget> kept;
    if (const CurvePoint* point = circuit_point(found_.curve))
      kept.assign(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(point->kept));
    for (const PatchTarget& target : kept) {
      found_.members.push_back(text_of(target));
      if (target.head >= 0) found_.heads.push_back({target.layer, target.head});
    }
    if (found_.published != nullptr)
      found_.agreement = agreement(*found_.published, order, scores, kept);
  }

  void edges() {
    const ComponentGraph graph(model_.config());
    const EdgeScores scores =
        options_.method == Method::kExact
            ? exact_edge_scores(model_, graph, prompts_, scoring())
            : attributed_edge_scores(model_, graph, prompts_, steps(), scoring());
    EdgeCurve curve = keep_edges(
        model_, graph, prompts_,
        options_.selection == Selection::kTop ? scores.order() : greedy_edge_order(graph, scores),
        {}, options_.level, keeping());
    found_.part_count = static_cast<double>(graph.edges());
    for (const std::int64_t number : curve.order) {
      const ComponentEdge edge = graph.edge(number);
      found_.parts.push_back({graph.edge_text(number),
                              scores.drops[static_cast<std::size_t>(number)],
                              NamedEdge{graph.node_text(edge.node), graph.input_text(edge.input)}});
    }
    std::vector<std::int64_t> members;
    if (const CurvePoint* point = circuit_point(curve)) members = curve.edges_of(graph, *point);
    for (const std::int64_t number : members) found_.members.push_back(graph.edge_text(number));
    found_.graph = drawn_edges(graph, members, scores);
    if (found_.published != nullptr) compare_nodes(graph, scores, members);
    found_.curve = std::move(curve);
  }

  // Published circuits are of heads and MLPs: those of the kept edges count, and a node's score is
  // the largest of an edge out of it.
  void compare_nodes(const ComponentGraph& graph, const EdgeScores& scores,
                     const std::vector<std::int64_t>& members) {
    std::vector<double> largest(graph.nodes().size(), 0.0);
    for (std::int64_t number = 0; number < graph.edges(); ++number) {
      double& score = largest[static_cast<std::size_t>(graph.edge(number).node)];
      score = std::max(score, std::abs(scores.drops[static_cast<std::size_t>(number)].mean));
    }
    std::set<std::int64_t> in_circuit;  // a connected node has an edge out of it
    for (const std::int64_t number : members) in_circuit.insert(graph.edge(number).node);
    std::vector<PatchTarget> targets, kept;
    std::vector<double> of_targets;
    for (std::size_t i = 1; i < graph.nodes().size(); ++i) {
      const PatchTarget target = target_of(graph.nodes()[i]);
      targets.push_back(target);
      of_targets.push_back(largest[i]);
      if (in_circuit.count(static_cast<std::int64_t>(i)) > 0) kept.push_back(target);
    }
    found_.agreement = agreement(*found_.published, targets, of_targets, kept);
  }

  void attention_edges() {
    require(!model_.config().bidirectional,
            "circuits of attention edges are of causal attention, and this model's is "
            "bidirectional; take its heads or the edges between parts");
    found_.cells = options_.method == Method::kExact
                       ? exact_cell_scores(model_, prompts_, scoring())
                       : attributed_cell_scores(model_, prompts_, steps(), scoring());
    const CellScores& scores = *found_.cells;
    found_.curve = keep_cells(model_, prompts_, scores, {}, options_.level, keeping());
    circuit_point(found_.curve);
    found_.part_count = scores.mean_cells();
    // By name over all prompts, for the reader; prompts choose each their own.
    for (const ScoredCell& scored : named_cells(scores, prompts_))
      found_.parts.push_back({scored.cell.name(), estimate(scored.drops), scored.cell});
    std::stable_sort(found_.parts.begin(), found_.parts.end(),
                     [](const CircuitPart& a, const CircuitPart& b) {
                       return std::abs(a.score.mean) > std::abs(b.score.mean);
                     });
  }

  const Model& model_;
  const LoadedTask& task_;
  const std::vector<TaskPrompt>& prompts_;
  const SearchOptions& options_;
  const std::string& label_;
  const Context& context_;
  PatchOptions patch_;
  FoundCircuit found_;
};

}  // namespace

std::string_view plural_of(Parts parts) {
  switch (parts) {
    case Parts::kHeads: return "heads";
    case Parts::kHeadsAndMlps: return "heads and MLPs";
    case Parts::kEdges: return "edges";
    case Parts::kAttentionEdges: return "attention edges";
  }
  return "parts";
}

std::string_view method_name(Parts parts, Method method) {
  if (parts != Parts::kEdges || method == Method::kExact) return name_of(method);
  return method == Method::kAttribution ? "eap" : "eap-ig";
}

std::string score_title(const SearchOptions& options) {
  if (options.method == Method::kExact) return "drop without it";
  return fmt::format("estimate by {}", method_name(options.parts, options.method));
}

Method usual_method(Parts parts) {
  switch (parts) {
    case Parts::kEdges: return Method::kIntegrated;
    case Parts::kAttentionEdges: return Method::kAttribution;
    default: return Method::kExact;
  }
}

void check_options(const SearchOptions& options) {
  const bool edges = options.parts == Parts::kEdges;
  const bool cells = options.parts == Parts::kAttentionEdges;
  if (edges && options.replacement != Replacement::kCorrupt)
    throw RequestError(
        fmt::format("edges carry corrupt values; the replacement {} does not go "
                    "with them",
                    name_of(options.replacement)));
  const bool means = options.replacement == Replacement::kMean ||
                     options.replacement == Replacement::kMeanByPosition;
  if (means && (cells || options.method != Method::kExact))
    throw RequestError(
        fmt::format("the replacement {} goes with the method exact of heads and "
                    "MLPs; take corrupt or zero",
                    name_of(options.replacement)));
  if (cells && options.selection != Selection::kTop)
    throw RequestError(fmt::format("attention-edges are selected by top-k only, not by {}",
                                   name_of(options.selection)));
  if (edges && options.selection == Selection::kGreedyAddition)
    throw RequestError(
        "the selection greedy-add goes with heads and MLPs; edges take top-k or "
        "greedy");
  if (options.level <= 0 || options.level > 1)
    throw RequestError(
        fmt::format("a level of {:g} is no share of an effect; it lies above 0 and "
                    "up to 1",
                    options.level));
}

FoundCircuit search_circuit(const Model& model, const LoadedTask& task,
                            const SearchOptions& options, const std::string& label,
                            SweepSection* section, const Context& context) {
  return Search(model, task, options, label, section, context).run();
}

std::uint64_t search_key(const Model& model, const LoadedTask& task, const SearchOptions& options) {
  return SweepKey()
      .add(version_string())                   // another program may sum in another order
      .add(name_of(model.placement().device))  // and another device cuts the sweep into other steps
      .add(name_of(model.placement().precision))
      .add(static_cast<std::uint64_t>(device_memory(model)))
      .add(model)
      .add(task.prompts.prompts)
      .add(name_of(task.metric))
      .add(name_of(options.parts))
      .add(name_of(options.method))
      .add(name_of(options.selection))
      .add(name_of(options.replacement))
      .add(static_cast<std::uint64_t>(options.steps))
      .add(options.candidates)
      .add(fmt::format("{}", options.level))
      .value();
}

Knobs knobs_of(SearchOptions& options) {
  Knobs knobs;
  knobs.section("Search");
  knobs.count({.name = "ig-steps", .what = "steps of integrated gradients"}, options.steps,
              {.min = 1, .max = 1000});
  knobs.count(
      {.name = "candidates", .what = "parts that a greedy step tries, next by score; 0 all"},
      options.candidates, {.min = 0, .max = 1 << 20});
  return knobs;
}

}  // namespace filigree::study
