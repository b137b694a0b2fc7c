#include "analyze/circuit/edge_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyze/circuit/clean_run.h"
#include "analyze/circuit/sweep.h"
#include "base/error.h"
#include "ops/elementwise/elementwise.h"
#include "runtime/threads.h"

namespace filigree {
namespace {

// Each token of a batch has its values of all nodes in memory: at GPT-2 small half a megabyte.
constexpr std::int64_t kTokensOfBatch = 256, kTokensAtOnce = 1024;

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

std::int64_t place_of(const ComponentInput& input) {
  const bool attention = input.branch != Branch::kMlp && input.branch != Branch::kLogits;
  return 2 * input.layer + (attention ? 0 : 1);
}

// The place a run must start at to compute a node anew.
std::int64_t place_of(const ComponentNode& node) {
  return node.is_input() ? -1 : 2 * node.layer + (node.is_mlp() ? 1 : 0);
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
    plan.start = std::min(plan.start, place_of(input));
    plan.inputs.push_back(std::move(part));
  }
  return plan;
}

std::string corrupt_tap(const ComponentInput& input) {
  return input.branch == Branch::kLogits ? tap_name(input) : residual_tap(place_of(input));
}

// Where the values of a node lie: one row a token, of the batch's tokens or of all tokens of a
// pass.
struct NodeValues {
  const float* data = nullptr;
  std::int64_t step = 0;  // from token to token
  bool of_pass = false;
};

// One batch of prompts: its clean and corrupt runs, and those with patched edges.
class EdgeBatch final : public SweepBatch {
 public:
  EdgeBatch(const Model& model, const ComponentGraph& graph, const PromptRefs& prompts,
            const std::vector<RunPlan>& plans, const PatchOptions& options)
      : graph_(graph),
        plans_(plans),
        options_(options),
        width_(model.config().width),
        run_(model, prompts, true, starts(plans), taps_of(graph, plans, true)) {
    TapValues corrupt =
        observed(model, prompts, true, taps_of(graph, plans, false), &corrupt_logits_);
    for (auto& [name, values] : corrupt) corrupt_[name] = repeated(values, 1, run_.first());
    // Of nodes that no run changes only the difference is of use.
    for (const std::string& name : taps_of(graph, plans, true))
      differences_[name] =
          sub(repeated(run_.values().at(name), 1, run_.first()), corrupt_.at(name)).value();
    std::erase_if(run_.values(), [&](const auto& entry) { return !is_start(entry.first); });
  }

  std::vector<double> clean() const override { return metric_of(run_.logits()); }
  std::vector<double> corrupt() const override { return metric_of(corrupt_logits_); }
  std::int64_t tokens() const override { return run_.tokens(); }

  // The metric of runs that start at the same place, one after the other.
  std::vector<double> changed(const std::vector<std::size_t>& chosen) override {
    const auto times = static_cast<std::int64_t>(chosen.size());
    const std::int64_t start = plans_[chosen[0]].start;
    if (start == kNowhere) return clean_of(times);
    Taps taps;
    of_pass_.clear();
    std::set<std::string> watched;
    std::map<std::string, std::vector<Reader>> readers;
    for (std::int64_t i = 0; i < times; ++i)
      for (const InputPlan& part : plans_[chosen[static_cast<std::size_t>(i)]].inputs) {
        readers[tap_name(graph_.inputs()[static_cast<std::size_t>(part.input)])].push_back(
            {i, &part});
        for (const std::int64_t u : part.nodes) {
          const ComponentNode& node = graph_.nodes()[static_cast<std::size_t>(u)];
          if (place_of(node) >= start) watched.insert(tap_name(node));
        }
      }
    for (const std::string& name : watched)
      taps.watch(name, [this](std::string_view tap, const Tensor& value) { keep(tap, value); });
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
        if (part.from_corrupt && !before_start) names.insert(corrupt_tap(input));
        for (const std::int64_t u : part.nodes) {
          const ComponentNode& node = graph.nodes()[static_cast<std::size_t>(u)];
          if (!before_start || place_of(node) < plan.start) names.insert(tap_name(node));
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
    Tensor difference = Tensor::empty(value.shape());
    const std::int64_t width = value.shape().inner(1);
    const std::int64_t tokens = value.elements() / width, base = run_.tokens();
    float* out = difference.mutable_f32();
    parallel_for(tokens, 4, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t token = begin; token < end; ++token) {
        const float* a = value.f32() + token * width;
        const float* b = corrupt.f32() + token % base * width;
        for (std::int64_t i = 0; i < width; ++i) out[token * width + i] = a[i] - b[i];
      }
    });
    of_pass_[std::string(name)] = difference;
  }

  NodeValues values_of(std::int64_t u, std::int64_t start) const {
    const ComponentNode& node = graph_.nodes()[static_cast<std::size_t>(u)];
    const bool of_pass = place_of(node) >= start;
    const Tensor& values = (of_pass ? of_pass_ : differences_).at(tap_name(node));
    const std::int64_t head = node.head < 0 ? 0 : node.head;
    return {values.f32() + head * width_, values.shape().inner(1), of_pass};
  }

  // The stream [B, T, d], or each head's copy of it [B, T, heads, d], as the inputs read it.
  Variable read(const std::vector<Reader>& readers, std::int64_t start, const Variable& value) {
    Tensor changed = value.value().clone();
    const std::int64_t step = changed.shape().inner(1), base = run_.tokens();
    float* data = changed.mutable_f32();
    std::map<std::int64_t, NodeValues> sources;
    for (const Reader& reader : readers)
      for (const std::int64_t u : reader.part->nodes)
        if (sources.count(u) == 0) sources[u] = values_of(u, start);
    parallel_for(base, 1, [&](std::int64_t begin, std::int64_t end) {
      for (const Reader& reader : readers) {
        const InputPlan& part = *reader.part;
        const ComponentInput& input = graph_.inputs()[static_cast<std::size_t>(part.input)];
        const std::int64_t head = input.head < 0 ? 0 : input.head;
        const float sign = part.from_corrupt ? 1.0f : -1.0f;
        const float* corrupt = part.from_corrupt ? corrupt_.at(corrupt_tap(input)).f32() : nullptr;
        for (std::int64_t token = begin; token < end; ++token) {
          const std::int64_t in_pass = reader.run * base + token;
          float* out = data + in_pass * step + head * width_;
          if (corrupt != nullptr) std::copy_n(corrupt + token * width_, width_, out);
          for (const std::int64_t u : part.nodes) {
            const NodeValues& source = sources.at(u);
            const float* x = source.data + (source.of_pass ? in_pass : token) * source.step;
            for (std::int64_t i = 0; i < width_; ++i) out[i] += sign * x[i];
          }
        }
      }
    });
    return changed;
  }

  const ComponentGraph& graph_;
  const std::vector<RunPlan>& plans_;
  const PatchOptions& options_;
  std::int64_t width_;
  CleanRun run_;
  Tensor corrupt_logits_;
  // By tap, positions from the first difference on: corrupt values, clean less corrupt ones, and
  // those of the pass less corrupt ones.
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

std::string tap_name(const ComponentNode& node) {
  if (node.is_input()) return "blocks.0.hook_resid_pre";
  return node.is_mlp() ? fmt::format("blocks.{}.hook_mlp_out", node.layer)
                       : fmt::format("blocks.{}.attn.hook_result", node.layer);
}

PatchedRuns run_edges(const Model& model, const ComponentGraph& graph,
                      const std::vector<TaskPrompt>& prompts, const std::vector<EdgeSet>& sets,
                      const PatchOptions& options) {
  require(!prompts.empty(), "edges: there is no prompt");
  require(options.tokens_at_once > 0, "edges: tokens_at_once must be positive");
  require(options.replacement == Replacement::kCorrupt,
          "edges: the replacement '{}' is not supported; edges carry 'corrupt' values",
          name_of(options.replacement));
  std::vector<RunPlan> plans;
  std::vector<std::int64_t> starts;
  for (const EdgeSet& set : sets) {
    plans.push_back(plan_of(graph, set));
    starts.push_back(plans.back().start);
  }
  SweepLimits limits;
  limits.batch_tokens = std::clamp<std::int64_t>(options.tokens_at_once / 4, 1, kTokensOfBatch);
  limits.pass_tokens = std::min(options.tokens_at_once, kTokensAtOnce);
  return sweep(prompts, starts, limits, options, [&](const PromptRefs& batch) {
    return std::make_unique<EdgeBatch>(model, graph, batch, plans, options);
  });
}

}  // namespace filigree
