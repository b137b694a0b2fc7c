#include "analyze/circuit/edge_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyze/circuit/circuit_sweep.h"
#include "analyze/circuit/clean_run.h"
#include "analyze/circuit/head_outputs.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "filigree/ops.h"
#include "ops/regions/regions.h"

namespace filigree {
namespace {

// What one input reads in one run: the run's stream less what the nodes would change, or the
// corrupt stream and what they have of the run, whichever has fewer nodes.
struct InputPlan {
  std::int64_t input = 0;
  bool from_corrupt = false;
  std::vector<std::int64_t> nodes = {};
};

struct RunPlan {
  std::int64_t start = kNowhere;
  std::vector<InputPlan> inputs = {};  // those with a patched edge
};

// The place (clean_run.h) before a layer's attention, or before its MLP.
std::int64_t place_in(const ComponentGraph& graph, std::int64_t layer, bool mlp) {
  return 2 * layer + (mlp && graph.has_mlps() && !graph.parallel() ? 1 : 0);
}

std::int64_t place_of(const ComponentGraph& graph, const ComponentInput& input) {
  const bool mlp = input.branch == Branch::kMlp || input.branch == Branch::kLogits;
  return place_in(graph, input.layer, mlp);
}

// The place a run must start at to compute a node anew.
std::int64_t place_of(const ComponentGraph& graph, const Component& node) {
  return node.kind == ComponentKind::kInput
             ? -1
             : place_in(graph, node.layer, node.kind == ComponentKind::kMlp);
}

RunPlan plan_of(const ComponentGraph& graph, const EdgeSet& set) {
  std::map<std::int64_t, std::vector<std::int64_t>> listed;
  for (const std::int64_t number : set.edges) {
    const ComponentEdge edge = graph.edge(number);
    listed[edge.input].push_back(edge.node);
  }
  if (set.kept)  // all inputs, also those that keep nothing
    for (std::size_t i = 0; i < graph.inputs().size(); ++i) listed[static_cast<std::int64_t>(i)];
  RunPlan plan;
  for (auto& [index, nodes] : listed) {
    const ComponentInput& input = graph.inputs()[static_cast<std::size_t>(index)];
    std::sort(nodes.begin(), nodes.end());
    require(std::adjacent_find(nodes.begin(), nodes.end()) == nodes.end(),
            "edges: an edge to {} is listed twice", graph.input_text(index));
    const auto count = static_cast<std::int64_t>(nodes.size());
    const std::int64_t patched = set.kept ? input.before - count : count;
    if (patched == 0) continue;
    InputPlan part;
    part.input = index;
    part.from_corrupt = input.before - patched <= patched;
    const bool listed_wanted = part.from_corrupt == set.kept;
    if (listed_wanted) {
      part.nodes = nodes;
    } else {
      for (std::int64_t u = 0; u < input.before; ++u)
        if (!std::binary_search(nodes.begin(), nodes.end(), u)) part.nodes.push_back(u);
    }
    plan.start = std::min(plan.start, place_of(graph, input));
    plan.inputs.push_back(std::move(part));
  }
  return plan;
}

std::string corrupt_tap(const ComponentGraph& graph, const ComponentInput& input) {
  return input.branch == Branch::kLogits ? tap_name(input) : residual_tap(place_of(graph, input));
}

// One batch of prompts: its clean and corrupt runs, and those with patched edges.
class EdgeBatch final : public SweepBatch {
 public:
  EdgeBatch(const Model& model, const ComponentGraph& graph, const PromptRefs& prompts,
            const std::vector<RunPlan>& plans, const PatchOptions& options)
      : graph_(graph),
        plans_(plans),
        options_(options),
        width_(model.config().width),
        heads_(model),
        run_(model, prompts, true, starts(plans), heads_.with_scales(taps_of(graph, plans, true))) {
    heads_.finish(run_.values());
    // Differences are f32 also where the model computes in bf16, which would round them away.
    const auto kept = [&](const Tensor& values) { return run_.changing(values).to(DType::kF32); };
    corrupt_ = observed(model, prompts, true, heads_.with_scales(taps_of(graph, plans, false)),
                        &corrupt_logits_);
    heads_.finish(corrupt_);
    for (auto& [name, values] : corrupt_) values = kept(values);
    // Of nodes that no run changes only the difference is of use.
    for (const std::string& name : taps_of(graph, plans, true))
      differences_[name] = sub(kept(run_.values().at(name)), corrupt_.at(name)).value();
    std::erase_if(run_.values(), [&](const auto& entry) { return !is_start(entry.first); });
  }

  std::vector<double> clean() const override { return metric_of(run_.logits()); }
  std::vector<double> corrupt() const override { return metric_of(corrupt_logits_); }
  std::int64_t tokens() const override { return run_.tokens(); }
  std::int64_t bytes() const override { return run_.bytes(true); }

  // The metric of runs that start at the same place, one after the other.
  std::vector<double> changed(const std::vector<std::size_t>& chosen) override {
    const auto times = static_cast<std::int64_t>(chosen.size());
    const std::int64_t start = plans_[chosen[0]].start;
    if (start == kNowhere) return clean_of(times);
    Taps taps;
    of_pass_.clear();
    std::set<std::string> watched;
    std::set<std::int64_t> watched_heads;  // layers
    std::map<std::string, std::vector<Reader>> readers;
    for (std::int64_t i = 0; i < times; ++i)
      for (const InputPlan& part : plans_[chosen[static_cast<std::size_t>(i)]].inputs) {
        readers[tap_name(graph_.inputs()[static_cast<std::size_t>(part.input)])].push_back(
            {i, &part});
        for (const std::int64_t u : part.nodes) {
          const Component& node = graph_.nodes()[static_cast<std::size_t>(u)];
          if (place_of(graph_, node) < start) continue;
          if (node.kind == ComponentKind::kHead)
            watched_heads.insert(node.layer);
          else
            watched.insert(tap_name(node));
        }
      }
    const TapWatcher keeping = [this](std::string_view tap, const Tensor& value) {
      keep(tap, value);
    };
    for (const std::string& name : watched) taps.watch(name, keeping);
    for (const std::int64_t layer : watched_heads) heads_.watch(taps, layer, keeping);
    for (const auto& [name, here] : readers)
      taps.intervene(name, [this, &here = here, start](const Variable& value) {
        return read(here, start, value);
      });
    const Tensor logits = run_.continued(start, times, taps);
    of_pass_.clear();
    return metric_of(logits);
  }

 private:
  struct Reader {
    std::int64_t run;
    const InputPlan* part;
  };

  static std::set<std::int64_t> starts(const std::vector<RunPlan>& plans) {
    std::set<std::int64_t> all;
    for (const RunPlan& plan : plans) all.insert(plan.start);
    return all;
  }

  // The taps of nodes that lie before the start of a run that needs them; or all that the corrupt
  // run must show.
  static std::set<std::string> taps_of(const ComponentGraph& graph,
                                       const std::vector<RunPlan>& plans, bool before_start) {
    std::set<std::string> names;
    for (const RunPlan& plan : plans)
      for (const InputPlan& part : plan.inputs) {
        const ComponentInput& input = graph.inputs()[static_cast<std::size_t>(part.input)];
        if (part.from_corrupt && !before_start) names.insert(corrupt_tap(graph, input));
        for (const std::int64_t u : part.nodes) {
          const Component& node = graph.nodes()[static_cast<std::size_t>(u)];
          if (!before_start || place_of(graph, node) < plan.start) names.insert(tap_name(node));
        }
      }
    return names;
  }

  bool is_start(const std::string& name) const {
    for (const std::int64_t place : starts(plans_))
      if (place != kNowhere && residual_tap(place) == name) return true;
    return false;
  }

  std::vector<double> metric_of(const Tensor& logits) const {
    return measure(options_.metric, logits, run_.prompts(), run_.logits());
  }

  // x(run) - x(corrupt) of a tap, for all tokens of the pass.
  void keep(std::string_view name, const Tensor& value) {
    const Tensor& corrupt = corrupt_.find(std::string(name))->second;
    const std::int64_t width = corrupt.elements(), runs = value.elements() / width;
    of_pass_[std::string(name)] =
        sub(value.to(DType::kF32).reshape({runs, width}), corrupt.reshape({1, width}))
            .value()
            .reshape(value.shape());
  }

  // The tensors that one intervention reads, each once.
  class Sources {
   public:
    std::int64_t index_of(const Tensor& tensor, const std::string& name) {
      const auto [found, fresh] =
          places_.try_emplace(name, static_cast<std::int64_t>(tensors_.size()));
      if (fresh) tensors_.push_back(tensor);
      return found->second;
    }
    const std::vector<Tensor>& tensors() const { return tensors_; }

   private:
    std::vector<Tensor> tensors_;
    std::map<std::string, std::int64_t> places_;
  };

  // What run `run` of a pass takes of a node: the difference at each of its tokens.
  RegionSource source_of(std::int64_t u, std::int64_t run, std::int64_t start, float sign,
                         Sources& sources) const {
    const Component& node = graph_.nodes()[static_cast<std::size_t>(u)];
    const bool of_pass = place_of(graph_, node) >= start;
    const std::string name = tap_name(node);
    const Tensor& values = (of_pass ? of_pass_ : differences_).at(name);
    const std::int64_t step = values.shape().inner(1);
    return {sources.index_of(values, name),
            (of_pass ? run * run_.tokens() * step : 0) + node.head * width_, step, sign};
  }

  // The stream [B, T, d], or each head's copy of it [B, T, heads, d], as the inputs read it.
  Variable read(const std::vector<Reader>& readers, std::int64_t start, const Variable& value) {
    Tensor changed = value.value().clone();
    const std::int64_t step = changed.shape().inner(1), tokens = run_.tokens();
    Sources sources;
    RegionList list;
    for (const Reader& reader : readers) {
      const InputPlan& part = *reader.part;
      const ComponentInput& input = graph_.inputs()[static_cast<std::size_t>(part.input)];
      const std::int64_t head = std::max<std::int64_t>(input.head, 0);
      list.begin(reader.run * tokens * step + head * width_, width_, tokens, step,
                 !part.from_corrupt);
      if (part.from_corrupt) {
        const std::string name = corrupt_tap(graph_, input);
        list.add({sources.index_of(corrupt_.at(name), "corrupt " + name), 0, width_});
      }
      const float sign = part.from_corrupt ? 1.0f : -1.0f;
      for (const std::int64_t u : part.nodes)
        list.add(source_of(u, reader.run, start, sign, sources));
    }
    write_regions(changed, sources.tensors(), list);
    return changed;
  }

  const ComponentGraph& graph_;
  const std::vector<RunPlan>& plans_;
  const PatchOptions& options_;
  std::int64_t width_;
  HeadOutputs heads_;
  CleanRun run_;
  Tensor corrupt_logits_;
  // By tap, positions from the first difference on, f32 on the model's device: corrupt values,
  // clean less corrupt ones, and those of the pass less corrupt ones.
  TapValues corrupt_, differences_, of_pass_;
};

}  // namespace

std::string tap_name(const ComponentInput& input) {
  switch (input.branch) {
    case Branch::kQuery: return fmt::format("blocks.{}.hook_q_input", input.layer);
    case Branch::kKey: return fmt::format("blocks.{}.hook_k_input", input.layer);
    case Branch::kValue: return fmt::format("blocks.{}.hook_v_input", input.layer);
    case Branch::kMlp: return fmt::format("blocks.{}.hook_mlp_in", input.layer);
    case Branch::kLogits: return fmt::format("blocks.{}.hook_resid_post", input.layer);
  }
  return "";
}

std::string tap_name(const Component& node) {
  if (node.kind == ComponentKind::kInput) return "blocks.0.hook_resid_pre";
  return node.kind == ComponentKind::kMlp ? fmt::format("blocks.{}.hook_mlp_out", node.layer)
                                          : HeadOutputs::tap(node.layer);
}

PatchedRuns run_edges(const Model& model, const ComponentGraph& graph,
                      const std::vector<TaskPrompt>& prompts, const std::vector<EdgeSet>& sets,
                      const PatchOptions& options) {
  require(!prompts.empty(), "edges: there is no prompt");
  require(options.replacement == Replacement::kCorrupt,
          "edges: the replacement '{}' is not supported; edges carry 'corrupt' values",
          name_of(options.replacement));
  std::vector<RunPlan> plans;
  std::vector<std::int64_t> starts;
  for (const EdgeSet& set : sets) {
    plans.push_back(plan_of(graph, set));
    starts.push_back(plans.back().start);
  }
  const SweepLimits limits = edge_limits(options, device_memory(model), model.config());
  return sweep(prompts, starts, limits, options, [&](const PromptRefs& batch) {
    return std::make_unique<EdgeBatch>(model, graph, batch, plans, options);
  });
}

}  // namespace filigree
