#include "analyze/circuit/edge_scores.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "analyze/circuit/gradient_run.h"
#include "analyze/circuit/head_outputs.h"
#include "analyze/circuit/pass_limits.h"
#include "analyze/circuit/replacements.h"
#include "filigree/error.h"
#include "filigree/ops.h"
#include "filigree/tasks.h"
#include "ops/regions/regions.h"

namespace filigree {
namespace {

// Mean and standard error of numbers that come one after the other (Welford).
class Running {
 public:
  void add(double value) {
    ++count_;
    const double step = value - mean_;
    mean_ += step / count_;
    squares_ += step * (value - mean_);
  }
  Estimate estimate() const {
    if (count_ < 2) return {mean_};
    return {mean_, std::sqrt(squares_ / (count_ - 1) / count_)};
  }

 private:
  double count_ = 0, mean_ = 0, squares_ = 0;
};

// Positions from `first` on of [B, T, heads, d] (or [B, T, d], one head), a head after the other,
// written at rows `row` and on of `to`, [B, rows, (T - first) d]; added `factor` times when `sum`.
void put_by_head(const Tensor& values, std::int64_t first, Tensor& to, std::int64_t row,
                 float factor, bool sum) {
  const Shape& shape = values.shape();
  const std::int64_t B = shape[0], T = shape[1], d = shape[-1];
  const std::int64_t heads = shape.rank() == 4 ? shape[2] : 1, rows = to.size(1);
  RegionList list;
  for (std::int64_t b = 0; b < B; ++b)
    for (std::int64_t h = 0; h < heads; ++h) {
      list.begin((b * rows + row + h) * (T - first) * d, d, T - first, d, sum);
      list.add({0, ((b * T + first) * heads + h) * d, heads * d, factor});
    }
  write_regions(to, {values}, list);
}

class ScoreBatch {
 public:
  ScoreBatch(const Model& model, const ComponentGraph& graph, PromptRefs prompts, Metric metric)
      : model_(model), graph_(graph), prompts_(std::move(prompts)), metric_(metric) {
    rows_ = static_cast<std::int64_t>(prompts_.size());
    const std::int64_t T = prompts_[0]->length();
    first_ = model.config().bidirectional ? 0 : T;
    for (const TaskPrompt* prompt : prompts_) first_ = std::min(first_, prompt->first_difference());
    width_ = (T - first_) * model.config().width;
    nodes_ = static_cast<std::int64_t>(graph.nodes().size());
    differences_ = Tensor::empty({rows_, nodes_, width_}, DType::kF32, model.placement().device);
    corrupt_logits_ = add_values(true);
    clean_logits_ = add_values(false);
    scores_ = Tensor::zeros({rows_, graph.edges()}, DType::kF32, model.placement().device);
  }

  std::vector<double> clean() const {
    return measure(metric_, clean_logits_, prompts_, clean_logits_);
  }
  std::vector<double> corrupt() const {
    return measure(metric_, corrupt_logits_, prompts_, clean_logits_);
  }
  Tensor scores() const { return scores_.on_host(); }  // [rows, edges]

  void add_scores(int steps) {
    for (int step = 0; step < std::max(steps, 1); ++step) {
      Tensor embedding;
      if (steps > 0) embedding = between(embeddings_[0], embeddings_[1], (step + 0.5) / steps);
      watch_gradients(embedding, 1.0 / std::max(steps, 1));
    }
  }

 private:
  // differences_ = clean - corrupt of all nodes, in two runs; the corrupt one comes first.
  Tensor add_values(bool corrupt) {
    Taps taps;
    const auto keep = [&](std::int64_t node) {
      return [this, corrupt, node](std::string_view, const Tensor& values) {
        put_by_head(values, first_, differences_, node, corrupt ? -1.0f : 1.0f, !corrupt);
      };
    };
    taps.watch(tap_name(graph_.nodes()[0]), keep(0));
    const HeadOutputs heads(model_);
    for (std::int64_t l = 0; l < graph_.layers(); ++l) {
      heads.watch(taps, l, keep(graph_.head_node(l, 0)));
      if (!graph_.has_mlps()) continue;
      const std::int64_t mlp = graph_.mlp_node(l);
      taps.watch(tap_name(graph_.nodes()[static_cast<std::size_t>(mlp)]), keep(mlp));
    }
    taps.observe("hook_embed");
    const Tensor logits =
        model_.forward(prompt_ids(prompts_, corrupt), analysed_run(taps, prompts_)).value();
    embeddings_[corrupt ? 1 : 0] = taps.value("hook_embed");
    return logits;
  }

  void watch_gradients(const Tensor& embedding, double share) {
    Taps taps;
    // The inputs that read the same nodes are scored in one product: q, k and v of a layer.
    Tensor together;
    std::int64_t pending = 0;
    const std::int64_t columns = graph_.heads() + 2 * graph_.key_heads();
    for (std::int64_t l = 0; l < graph_.layers(); ++l) {
      for (const Branch branch : {Branch::kQuery, Branch::kKey, Branch::kValue}) {
        const std::int64_t first_input = graph_.input(branch, l, 0);
        const std::int64_t begin = graph_.input(Branch::kQuery, l, 0);
        taps.watch_gradient(tap_name(graph_.inputs()[static_cast<std::size_t>(first_input)]),
                            [&, first_input, begin](std::string_view, const Tensor& gradient) {
                              if (pending == 0)
                                together = differences_.like({rows_, columns, width_});
                              put_by_head(gradient, first_, together, first_input - begin, 1.0f,
                                          false);
                              pending = (pending + 1) % 3;
                              if (pending == 0)
                                multiply(together, begin, share), together = Tensor();
                            });
      }
      if (graph_.has_mlps()) watch_single(taps, graph_.input(Branch::kMlp, l), share);
    }
    watch_single(taps, graph_.logits(), share);
    run_gradient(model_, prompts_, taps, metric_, clean_logits_, embedding);
  }

  void watch_single(Taps& taps, std::int64_t input, double share) {
    taps.watch_gradient(tap_name(graph_.inputs()[static_cast<std::size_t>(input)]),
                        [this, input, share](std::string_view, const Tensor& gradient) {
                          Tensor one = differences_.like({rows_, 1, width_});
                          put_by_head(gradient, first_, one, 0, 1.0f, false);
                          multiply(one, input, share);
                        });
  }

  // Adds `share` times the products of all nodes before the inputs with the inputs' gradients,
  // [rows, inputs, width].
  void multiply(const Tensor& gradients, std::int64_t first_input, double share) {
    const ComponentInput& first = graph_.inputs()[static_cast<std::size_t>(first_input)];
    const std::int64_t inputs = gradients.size(1), before = first.before;
    // The edges of neighbouring inputs that read equally many nodes are numbered one input after
    // the other.
    RegionList sums;
    const auto add_row = [&](std::int64_t row, std::int64_t tensor, std::int64_t offset,
                             std::int64_t columns) {
      sums.begin(row * graph_.edges() + first.first, before, inputs, before, true);
      sums.add({tensor, offset, columns, static_cast<float>(share)});
    };
    std::vector<Tensor> products;
    if (gradients.on_gpu()) {  // one product, though later nodes are multiplied for nothing
      products.push_back(
          matmul(gradients, differences_, {.transpose_b = true}).value());  // [rows, inputs, nodes]
      for (std::int64_t row = 0; row < rows_; ++row) add_row(row, 0, row * inputs * nodes_, nodes_);
    } else {
      for (std::int64_t row = 0; row < rows_; ++row) {
        const Tensor values =
            differences_.rows(row, row + 1).reshape({nodes_, width_}).rows(0, before);
        const Tensor gradient = gradients.rows(row, row + 1).reshape({inputs, width_});
        products.push_back(
            matmul(gradient, values, {.transpose_b = true}).value());  // [inputs, before]
        add_row(row, row, 0, before);
      }
    }
    write_regions(scores_, products, sums);
  }

  const Model& model_;
  const ComponentGraph& graph_;
  PromptRefs prompts_;
  Metric metric_;
  std::int64_t rows_ = 0, first_ = 0, nodes_ = 0;
  std::int64_t width_ = 0;  // of one node's values: positions from `first` on, times d
  Tensor differences_;      // [rows, nodes, width]
  Tensor embeddings_[2];    // clean, corrupt
  Tensor corrupt_logits_, clean_logits_;
  Tensor scores_;  // [rows, edges]
};

}  // namespace

std::vector<std::int64_t> EdgeScores::order() const {
  std::vector<std::int64_t> order(drops.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return std::abs(drops[static_cast<std::size_t>(a)].mean) >
           std::abs(drops[static_cast<std::size_t>(b)].mean);
  });
  return order;
}

EdgeScores exact_edge_scores(const Model& model, const ComponentGraph& graph,
                             const std::vector<TaskPrompt>& prompts, const PatchOptions& options,
                             const std::vector<std::int64_t>* edges) {
  std::vector<std::int64_t> chosen;
  if (edges != nullptr) {
    chosen = *edges;
  } else {
    chosen.resize(static_cast<std::size_t>(graph.edges()));
    std::iota(chosen.begin(), chosen.end(), std::int64_t{0});
  }
  std::vector<EdgeSet> sets;
  for (const std::int64_t number : chosen) sets.push_back({.edges = {number}});
  PatchedRuns runs = run_edges(model, graph, prompts, sets, options);
  EdgeScores result;
  result.drops.resize(static_cast<std::size_t>(graph.edges()));
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    std::vector<double>& values = runs.patched[i];
    for (std::size_t p = 0; p < values.size(); ++p) values[p] = runs.clean[p] - values[p];
    result.drops[static_cast<std::size_t>(chosen[i])] = estimate(values);
  }
  result.clean = std::move(runs.clean);
  result.corrupt = std::move(runs.corrupt);
  return result;
}

EdgeScores attributed_edge_scores(const Model& model, const ComponentGraph& graph,
                                  const std::vector<TaskPrompt>& prompts, int steps,
                                  const PatchOptions& options) {
  check_attribution(prompts, steps, options);
  require(options.replacement == Replacement::kCorrupt,
          "edges: the replacement '{}' is not supported; edges carry 'corrupt' values",
          name_of(options.replacement));
  EdgeScores result;
  result.clean.resize(prompts.size());
  result.corrupt.resize(prompts.size());
  std::vector<Running> drops(static_cast<std::size_t>(graph.edges()));
  const auto total = static_cast<std::int64_t>(prompts.size());
  std::int64_t done = 0;
  const std::int64_t at_once = gradient_tokens(options, device_memory(model), model.config(), true);
  for (const std::vector<std::size_t>& batch : batches_of(prompts, at_once)) {
    PromptRefs refs;
    for (const std::size_t i : batch) refs.push_back(&prompts[i]);
    ScoreBatch scoring(model, graph, refs, options.metric);
    scoring.add_scores(steps);
    const std::vector<double> clean = scoring.clean(), corrupt = scoring.corrupt();
    const Tensor scores = scoring.scores();
    for (std::size_t i = 0; i < batch.size(); ++i) {
      result.clean[batch[i]] = clean[i];
      result.corrupt[batch[i]] = corrupt[i];
      for (std::int64_t edge = 0; edge < graph.edges(); ++edge)
        drops[static_cast<std::size_t>(edge)].add(
            static_cast<double>(scores.f32()[static_cast<std::int64_t>(i) * graph.edges() + edge]));
    }
    done += static_cast<std::int64_t>(batch.size());
    if (options.progress) options.progress(done, total);
  }
  for (const Running& drop : drops) result.drops.push_back(drop.estimate());
  return result;
}

}  // namespace filigree
