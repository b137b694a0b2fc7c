#include "analyze/circuit/attention_edges.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <tuple>

#include "analyze/circuit/gradient_run.h"
#include "analyze/circuit/replacements.h"
#include "base/error.h"

namespace filigree {
namespace {

constexpr std::int64_t kTokensOfBatch = 1024;  // whose patterns and gradients lie in memory

PatchTarget target_of(const AttentionCell& cell) {
  return {Site::kPattern, cell.layer, cell.head, cell.query, cell.key};
}

std::string pattern_tap(std::int64_t layer) { return tap_name({Site::kPattern, layer}); }

std::set<std::string> pattern_taps(const ModelConfig& config) {
  std::set<std::string> names;
  for (std::int64_t l = 0; l < config.layers; ++l) names.insert(pattern_tap(l));
  return names;
}

void check(const std::vector<TaskPrompt>& prompts, const PatchOptions& options) {
  require(!prompts.empty(), "attention edges: there is no prompt");
  require(options.replacement == Replacement::kCorrupt || options.replacement == Replacement::kZero,
          "attention edges: the replacement '{}' is not supported; 'corrupt' and 'zero' are",
          name_of(options.replacement));
}

// One batch of prompts, with what becomes of its patterns.
struct Patterns {
  PromptRefs prompts;
  TapValues clean, replacement;  // [B, H, T, T]; no replacement: zero
  Tensor embedding[2];           // clean, corrupt
  Tensor clean_logits, corrupt_logits;

  Patterns(const Model& model, PromptRefs refs, const PatchOptions& options)
      : prompts(std::move(refs)) {
    std::set<std::string> names = pattern_taps(model.config());
    names.insert("hook_embed");
    clean = observed(model, prompts, false, names, &clean_logits);
    replacement = observed(model, prompts, true, names, &corrupt_logits);
    embedding[0] = clean.at("hook_embed");
    embedding[1] = replacement.at("hook_embed");
    if (options.replacement == Replacement::kZero) replacement.clear();
  }

  // Calls body(cell, index of its element, clean - replacement) for the cells of a row that differ.
  template <typename Body>
  void for_cells(std::int64_t row, Body&& body) const {
    std::int64_t layer = 0;
    for (auto found = clean.find(pattern_tap(0)); found != clean.end();
         found = clean.find(pattern_tap(++layer))) {
      const Tensor& pattern = found->second;
      const std::int64_t H = pattern.size(1), T = pattern.size(2);
      const float* other = replacement.empty() ? nullptr : replacement.at(found->first).f32();
      for (std::int64_t h = 0; h < H; ++h)
        for (std::int64_t i = 0; i < T; ++i)
          for (std::int64_t j = 0; j <= i; ++j) {
            const std::int64_t at = ((row * H + h) * T + i) * T + j;
            const float value = pattern.f32()[at], becomes = other == nullptr ? 0.0f : other[at];
            if (value != becomes)
              body(AttentionCell{layer, h, i, j}, at,
                   static_cast<double>(value) - static_cast<double>(becomes));
          }
    }
  }
};

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

// Everything but the kept cells, in targets as large as they can be.
PatchSet all_but(const ModelConfig& config, std::int64_t length,
                 const std::vector<AttentionCell>& kept) {
  const auto before = [](const AttentionCell& a, const AttentionCell& b) {
    return std::tie(a.layer, a.head, a.query, a.key) < std::tie(b.layer, b.head, b.query, b.key);
  };
  std::set<AttentionCell, decltype(before)> live(kept.begin(), kept.end(), before);
  const auto any = [&](const AttentionCell& first, const AttentionCell& end) {
    const auto found = live.lower_bound(first);
    return found != live.end() && before(*found, end);
  };
  PatchSet set;
  for (std::int64_t l = 0; l < config.layers; ++l) {
    if (!any({l, 0, 0, 0}, {l + 1, 0, 0, 0})) {
      set.push_back({Site::kPattern, l});
      continue;
    }
    for (std::int64_t h = 0; h < config.heads; ++h) {
      if (!any({l, h, 0, 0}, {l, h + 1, 0, 0})) {
        set.push_back({Site::kPattern, l, h});
        continue;
      }
      for (std::int64_t i = 0; i < length; ++i) {
        if (!any({l, h, i, 0}, {l, h, i + 1, 0})) {
          set.push_back({Site::kPattern, l, h, i});
          continue;
        }
        for (std::int64_t j = 0; j <= i; ++j)
          if (live.count({l, h, i, j}) == 0) set.push_back({Site::kPattern, l, h, i, j});
      }
    }
  }
  return set;
}

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
        for (std::size_t i = 0; i < batch.size(); ++i)
          patterns.for_cells(static_cast<std::int64_t>(i),
                             [&](const AttentionCell& cell, std::int64_t, double) {
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
        std::vector<std::vector<double>> gradients(static_cast<std::size_t>(model.config().layers));
        for (int step = 0; step < std::max(steps, 1); ++step) {
          Taps taps;
          for (std::int64_t l = 0; l < model.config().layers; ++l)
            taps.watch_gradient(pattern_tap(l), [&, l](std::string_view, const Tensor& gradient) {
              std::vector<double>& sum = gradients[static_cast<std::size_t>(l)];
              sum.resize(static_cast<std::size_t>(gradient.elements()), 0.0);
              for (std::size_t i = 0; i < sum.size(); ++i)
                sum[i] += static_cast<double>(gradient.f32()[i]) / std::max(steps, 1);
            });
          Tensor embedding;
          if (steps > 0)
            embedding = between(patterns.embedding[0], patterns.embedding[1], (step + 0.5) / steps);
          run_gradient(model, patterns.prompts, taps, options.metric, patterns.clean_logits,
                       embedding);
        }
        for (std::size_t i = 0; i < batch.size(); ++i) {
          CellScores::OfPrompt& prompt = result.prompts[batch[i]];
          patterns.for_cells(static_cast<std::int64_t>(i), [&](const AttentionCell& cell,
                                                               std::int64_t at, double difference) {
            prompt.cells.push_back(cell);
            prompt.drops.push_back(
                difference *
                gradients[static_cast<std::size_t>(cell.layer)][static_cast<std::size_t>(at)]);
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
  std::vector<std::vector<std::size_t>> orders;
  for (const CellScores::OfPrompt& prompt : scores.prompts) orders.push_back(prompt.order());
  return measured_curve(most, std::move(sizes), level, [&](const std::vector<std::size_t>& kept) {
    std::vector<std::vector<PatchSet>> sets(prompts.size());
    for (std::size_t p = 0; p < prompts.size(); ++p)
      for (const std::size_t count : kept) {
        std::vector<AttentionCell> cells;
        for (std::size_t i = 0; i < std::min(count, orders[p].size()); ++i)
          cells.push_back(scores.prompts[p].cells[orders[p][i]]);
        sets[p].push_back(all_but(model.config(), prompts[p].length(), cells));
      }
    const std::vector<PatchedRuns> runs = run_by_prompt(model, prompts, sets, options);
    PatchedRuns all;
    all.patched.assign(kept.size(), {});
    for (const PatchedRuns& run : runs) {
      all.clean.push_back(run.clean[0]);
      all.corrupt.push_back(run.corrupt[0]);
      for (std::size_t k = 0; k < kept.size(); ++k) all.patched[k].push_back(run.patched[k][0]);
    }
    return all;
  });
}

}  // namespace filigree
