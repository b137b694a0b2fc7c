#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "analyze/circuit/circuit_sweep.h"
#include "analyze/circuit/clean_run.h"
#include "analyze/circuit/gradient_run.h"
#include "filigree/circuit.h"
#include "filigree/error.h"
#include "filigree/ops.h"

namespace filigree {
namespace {

constexpr std::int64_t kTokensOfBatch = 1024;  // whose patterns and gradients lie in memory

PatchTarget target_of(const AttentionCell& cell) {
  return {Site::kPattern, cell.layer, cell.head, cell.query, cell.key};
}

std::string pattern_tap(std::int64_t layer) { return tap_name({Site::kPattern, layer}); }

void check(const std::vector<TaskPrompt>& prompts, const PatchOptions& options) {
  require(!prompts.empty(), "attention edges: there is no prompt");
  require(options.replacement == Replacement::kCorrupt || options.replacement == Replacement::kZero,
          "attention edges: the replacement '{}' is not supported; 'corrupt' and 'zero' are",
          name_of(options.replacement));
}

// One batch of prompts, with what becomes of its patterns.
struct Patterns {
  PromptRefs prompts;
  std::vector<Tensor> differences;  // clean - replacement of a layer [B, H, T, T], f32
  Tensor embedding[2];              // clean, corrupt
  Tensor clean_logits, corrupt_logits;

  Patterns(const Model& model, PromptRefs refs, const PatchOptions& options)
      : prompts(std::move(refs)) {
    std::set<std::string> names = {"hook_embed"};
    for (std::int64_t l = 0; l < model.config().layers; ++l) names.insert(pattern_tap(l));
    TapValues clean = observed(model, prompts, false, names, &clean_logits);
    TapValues corrupt = observed(model, prompts, true, names, &corrupt_logits);
    embedding[0] = clean.at("hook_embed");
    embedding[1] = corrupt.at("hook_embed");
    for (std::int64_t l = 0; l < model.config().layers; ++l) {
      const Tensor pattern = clean.at(pattern_tap(l)).to(DType::kF32);
      differences.push_back(options.replacement == Replacement::kZero
                                ? pattern
                                : sub(pattern, corrupt.at(pattern_tap(l)).to(DType::kF32)).value());
    }
  }
};

// Calls body(cell, index of its element) for the cells of a row that differ, where `differences` of
// the layers lie on the CPU.
template <typename Body>
void for_cells(const std::vector<Tensor>& differences, std::int64_t row, Body&& body) {
  for (std::size_t layer = 0; layer < differences.size(); ++layer) {
    const Tensor& difference = differences[layer];
    const std::int64_t H = difference.size(1), T = difference.size(2);
    for (std::int64_t h = 0; h < H; ++h)
      for (std::int64_t i = 0; i < T; ++i)
        for (std::int64_t j = 0; j <= i; ++j) {
          const std::int64_t at = ((row * H + h) * T + i) * T + j;
          if (difference.f32()[at] != 0.0f)
            body(AttentionCell{static_cast<std::int64_t>(layer), h, i, j}, at);
        }
  }
}

std::vector<Tensor> on_host(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> here;
  for (const Tensor& tensor : tensors) here.push_back(tensor.on_host());
  return here;
}

// Calls body(indices, patterns) for all batches and fills in the metrics.
template <typename Body>
CellScores by_batches(const Model& model, const std::vector<TaskPrompt>& prompts,
                      const PatchOptions& options, Body&& body) {
  check(prompts, options);
  CellScores scores;
  scores.prompts.resize(prompts.size());
  scores.clean.resize(prompts.size());
  scores.corrupt.resize(prompts.size());
  for (const std::vector<std::size_t>& batch : batches_of(prompts, kTokensOfBatch)) {
    PromptRefs refs;
    for (const std::size_t i : batch) refs.push_back(&prompts[i]);
    const Patterns patterns(model, refs, options);
    const auto clean = measure(options.metric, patterns.clean_logits, refs, patterns.clean_logits);
    const auto corrupt =
        measure(options.metric, patterns.corrupt_logits, refs, patterns.clean_logits);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      scores.clean[batch[i]] = clean[i];
      scores.corrupt[batch[i]] = corrupt[i];
    }
    body(batch, patterns, scores);
  }
  return scores;
}

// Runs of a batch of prompts in which only each prompt's most important cells are kept, as many as
// a run's size says. Patterns are multiplied with what is kept of them, all runs of a pass at once:
// a cell by itself would be a copy each, and they are tens of thousands.
class KeptCells final : public SweepBatch {
 public:
  // `prompts` are among those of `scores`, the first of which is `all`.
  KeptCells(const Model& model, const PromptRefs& prompts, const TaskPrompt* all,
            const CellScores& scores, const std::vector<std::size_t>& sizes,
            const PatchOptions& options)
      : layers_(model.config().layers),
        heads_(model.config().heads),
        sizes_(sizes),
        options_(options),
        run_(model, prompts, options.replacement == Replacement::kCorrupt, {kStart}) {
    for (const TaskPrompt* prompt : prompts)
      corrupt_.push_back(scores.corrupt[static_cast<std::size_t>(prompt - all)]);
    const std::int64_t first = run_.first(), length = run_.length();
    places_.assign(static_cast<std::size_t>(layers_ * layer_cells()), kNever);
    for (std::size_t row = 0; row < prompts.size(); ++row) {
      const CellScores::OfPrompt& scored =
          scores.prompts[static_cast<std::size_t>(prompts[row] - all)];
      const std::vector<std::size_t> order = scored.order();
      for (std::size_t i = 0; i < order.size(); ++i) {
        const AttentionCell& cell = scored.cells[order[i]];
        if (cell.query < first) continue;  // the same in both runs, and not computed again
        const std::int64_t head =
            (cell.layer * run_.rows() + static_cast<std::int64_t>(row)) * heads_ + cell.head;
        places_[static_cast<std::size_t>((head * (length - first) + cell.query - first) * length +
                                         cell.key)] = static_cast<std::uint32_t>(i);
      }
    }
    if (options.replacement != Replacement::kCorrupt) return;
    std::set<std::string> names;
    for (std::int64_t l = 0; l < layers_; ++l) names.insert(pattern_tap(l));
    const TapValues patterns = observed(model, prompts, true, names);
    for (std::int64_t l = 0; l < layers_; ++l)
      replacements_.push_back(patterns.at(pattern_tap(l)).on_host());
  }

  std::vector<double> clean() const override { return metric_of(run_.logits()); }
  std::vector<double> corrupt() const override { return corrupt_; }
  std::int64_t tokens() const override { return run_.tokens(); }
  std::int64_t bytes() const override {
    const auto number = static_cast<std::int64_t>(sizeof(float));
    return run_.bytes(false) + 4 * number * layer_cells();
  }

  std::vector<double> changed(const std::vector<std::size_t>& chosen) override {
    Taps taps;
    for (std::int64_t l = 0; l < layers_; ++l)
      taps.intervene(pattern_tap(l),
                     [this, l, &chosen](const Variable& x) { return kept(l, chosen, x.value()); });
    return metric_of(run_.continued(kStart, static_cast<std::int64_t>(chosen.size()), taps));
  }

 private:
  static constexpr std::int64_t kStart = 0;  // before the attention of the first layer
  static constexpr std::uint32_t kNever = UINT32_MAX;

  std::int64_t layer_cells() const {
    return run_.rows() * heads_ * (run_.length() - run_.first()) * run_.length();
  }

  // A layer's patterns with what the runs do not keep of them replaced.
  Variable kept(std::int64_t layer, const std::vector<std::size_t>& chosen,
                const Tensor& pattern) const {
    const auto cells = static_cast<std::size_t>(layer_cells());
    const std::uint32_t* places = places_.data() + static_cast<std::size_t>(layer) * cells;
    const Tensor of_corrupt = replacements_.empty() ? Tensor() : corrupt_pattern(layer);
    Tensor factors = Tensor::empty(pattern.shape());
    Tensor others = of_corrupt.defined() ? Tensor::empty(pattern.shape()) : Tensor();
    for (std::size_t run = 0; run < chosen.size(); ++run) {
      const std::size_t size = sizes_[chosen[run]];
      float* factor = factors.mutable_f32() + run * cells;
      for (std::size_t i = 0; i < cells; ++i) factor[i] = places[i] < size ? 1.0f : 0.0f;
      if (!others.defined()) continue;
      float* other = others.mutable_f32() + run * cells;
      const float* corrupt = of_corrupt.f32();
      for (std::size_t i = 0; i < cells; ++i) other[i] = places[i] < size ? 0.0f : corrupt[i];
    }
    const auto there = [&](const Tensor& values) {
      return Variable(values.to(pattern.device()).to(pattern.dtype()));
    };
    const Variable product = mul(pattern, there(factors));
    return others.defined() ? add(product, there(others)) : product;
  }

  // The rows of it that are computed again.
  Tensor corrupt_pattern(std::int64_t layer) const {
    const Tensor& whole = replacements_[static_cast<std::size_t>(layer)];
    const std::int64_t first = run_.first(), length = run_.length();
    const std::int64_t count = (length - first) * length;
    Tensor rows = Tensor::empty({run_.rows(), heads_, length - first, length});
    for (std::int64_t head = 0; head < run_.rows() * heads_; ++head)
      std::copy_n(whole.f32() + head * length * length + first * length, count,
                  rows.mutable_f32() + head * count);
    return rows;
  }

  std::vector<double> metric_of(const Tensor& logits) const {
    return measure(options_.metric, logits, run_.prompts(), run_.logits());
  }

  const std::int64_t layers_, heads_;
  const std::vector<std::size_t>& sizes_;
  const PatchOptions& options_;
  CleanRun run_;
  std::vector<double> corrupt_;
  // By layer, prompt, head, query and key: the cell's place in its prompt's order.
  std::vector<std::uint32_t> places_;
  std::vector<Tensor> replacements_;  // patterns of the corrupt prompts, by layer, on the CPU
};

// Runs of one prompt after the other, each with its own sets; their progress as one.
std::vector<PatchedRuns> run_by_prompt(const Model& model, const std::vector<TaskPrompt>& prompts,
                                       const std::vector<std::vector<PatchSet>>& sets,
                                       const PatchOptions& options) {
  std::int64_t total = 0, before = 0;
  for (const std::vector<PatchSet>& of_prompt : sets)
    total += static_cast<std::int64_t>(of_prompt.size());
  std::vector<PatchedRuns> runs;
  for (std::size_t p = 0; p < prompts.size(); ++p) {
    PatchOptions one = options;
    if (options.progress)
      one.progress = [&](std::int64_t done, std::int64_t) {
        options.progress(before + done, total);
      };
    runs.push_back(run_patched(model, {prompts[p]}, sets[p], one));
    before += static_cast<std::int64_t>(sets[p].size());
  }
  return runs;
}

}  // namespace

std::vector<std::size_t> CellScores::OfPrompt::order() const {
  std::vector<std::size_t> order(cells.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::abs(drops[a]) > std::abs(drops[b]);
  });
  return order;
}

double CellScores::mean_cells() const {
  double sum = 0;
  for (const OfPrompt& prompt : prompts) sum += static_cast<double>(prompt.cells.size());
  return sum / static_cast<double>(std::max<std::size_t>(prompts.size(), 1));
}

std::size_t CellScores::most_cells() const {
  std::size_t most = 0;
  for (const OfPrompt& prompt : prompts) most = std::max(most, prompt.cells.size());
  return most;
}

CellScores exact_cell_scores(const Model& model, const std::vector<TaskPrompt>& prompts,
                             const PatchOptions& options) {
  CellScores scores = by_batches(
      model, prompts, options,
      [](const std::vector<std::size_t>& batch, const Patterns& patterns, CellScores& result) {
        const std::vector<Tensor> differences = on_host(patterns.differences);
        for (std::size_t i = 0; i < batch.size(); ++i)
          for_cells(differences, static_cast<std::int64_t>(i),
                    [&](const AttentionCell& cell, std::int64_t) {
                      result.prompts[batch[i]].cells.push_back(cell);
                    });
      });
  std::vector<std::vector<PatchSet>> sets(prompts.size());
  for (std::size_t p = 0; p < prompts.size(); ++p)
    for (const AttentionCell& cell : scores.prompts[p].cells) sets[p].push_back({target_of(cell)});
  const std::vector<PatchedRuns> runs = run_by_prompt(model, prompts, sets, options);
  for (std::size_t p = 0; p < prompts.size(); ++p)
    for (const std::vector<double>& patched : runs[p].patched)
      scores.prompts[p].drops.push_back(runs[p].clean[0] - patched[0]);
  return scores;
}

CellScores attributed_cell_scores(const Model& model, const std::vector<TaskPrompt>& prompts,
                                  int steps, const PatchOptions& options) {
  check_attribution(prompts, steps, options);
  const auto total = static_cast<std::int64_t>(prompts.size());
  std::int64_t done = 0;
  return by_batches(
      model, prompts, options,
      [&](const std::vector<std::size_t>& batch, const Patterns& patterns, CellScores& result) {
        std::vector<Tensor> sums(patterns.differences.size());  // of the products, by layer
        const auto share = static_cast<float>(1.0 / std::max(steps, 1));
        for (int step = 0; step < std::max(steps, 1); ++step) {
          Taps taps;
          for (std::size_t l = 0; l < sums.size(); ++l)
            taps.watch_gradient(
                pattern_tap(static_cast<std::int64_t>(l)),
                [&, l](std::string_view, const Tensor& gradient) {
                  const Variable product =
                      mul(scale(gradient.to(DType::kF32), share), patterns.differences[l]);
                  sums[l] = (sums[l].defined() ? add(sums[l], product) : product).value();
                });
          Tensor embedding;
          if (steps > 0)
            embedding = between(patterns.embedding[0], patterns.embedding[1], (step + 0.5) / steps);
          run_gradient(model, patterns.prompts, taps, options.metric, patterns.clean_logits,
                       embedding);
        }
        const std::vector<Tensor> differences = on_host(patterns.differences);
        const std::vector<Tensor> drops = on_host(sums);
        for (std::size_t i = 0; i < batch.size(); ++i) {
          CellScores::OfPrompt& prompt = result.prompts[batch[i]];
          for_cells(differences, static_cast<std::int64_t>(i),
                    [&](const AttentionCell& cell, std::int64_t at) {
                      prompt.cells.push_back(cell);
                      prompt.drops.push_back(static_cast<double>(
                          drops[static_cast<std::size_t>(cell.layer)].f32()[at]));
                    });
        }
        done += static_cast<std::int64_t>(batch.size());
        if (options.progress) options.progress(done, total);
      });
}

Curve keep_cells(const Model& model, const std::vector<TaskPrompt>& prompts,
                 const CellScores& scores, std::vector<std::size_t> sizes,
                 std::optional<double> level, const PatchOptions& options) {
  check(prompts, options);
  require(scores.prompts.size() == prompts.size(), "attention edges: scores of {} prompts for {}",
          scores.prompts.size(), prompts.size());
  const std::size_t most = scores.most_cells();
  if (sizes.empty()) sizes = spread_sizes(most);
  const SweepLimits limits = patch_limits(options, device_memory(model), model.config());
  return measured_curve(
      most, std::move(sizes), level, options,
      [&](const std::vector<std::size_t>& kept, const PatchOptions& watched) {
        const std::vector<std::int64_t> starts(kept.size(), 0);
        return sweep(prompts, starts, limits, watched, [&](const PromptRefs& batch) {
          return std::make_unique<KeptCells>(model, batch, prompts.data(), scores, kept, watched);
        });
      });
}

}  // namespace filigree
