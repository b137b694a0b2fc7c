#include "filigree/analyze/circuit/attention_edges.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "filigree/analyze/circuit/gradient_run.h"
#include "filigree/analyze/circuit/replacements.h"
#include "filigree/base/error.h"
#include "filigree/ops/elementwise/elementwise.h"

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

// Everything but the kept cells, in targets as large as they can be.
PatchSet all_but(const ModelConfig& config, std::int64_t length,
                 const std::vector<AttentionCell>& kept) {
  const auto row_of = [&](std::int64_t l, std::int64_t h, std::int64_t i) {
    return static_cast<std::size_t>((l * config.heads + h) * length + i);
  };
  // Whether cells are kept, and how many of each row, head and layer.
  const auto rows = row_of(config.layers, 0, 0);
  std::vector<bool> live(rows * static_cast<std::size_t>(length));
  std::vector<std::int64_t> in_row(rows), in_head(rows / static_cast<std::size_t>(length)),
      in_layer(static_cast<std::size_t>(config.layers));
  const auto cell_of = [&](std::size_t row, std::int64_t j) {
    return row * static_cast<std::size_t>(length) + static_cast<std::size_t>(j);
  };
  const auto head_of = [&](std::int64_t l, std::int64_t h) {
    return static_cast<std::size_t>(l * config.heads + h);
  };
  for (const AttentionCell& cell : kept) {
    const std::size_t row = row_of(cell.layer, cell.head, cell.query);
    live[cell_of(row, cell.key)] = true;
    ++in_row[row];
    ++in_head[head_of(cell.layer, cell.head)];
    ++in_layer[static_cast<std::size_t>(cell.layer)];
  }
  PatchSet set;
  for (std::int64_t l = 0; l < config.layers; ++l) {
    if (in_layer[static_cast<std::size_t>(l)] == 0) {
      set.push_back({Site::kPattern, l});
      continue;
    }
    for (std::int64_t h = 0; h < config.heads; ++h) {
      if (in_head[head_of(l, h)] == 0) {
        set.push_back({Site::kPattern, l, h});
        continue;
      }
      for (std::int64_t i = 0; i < length; ++i) {
        const std::size_t row = row_of(l, h, i);
        if (in_row[row] == 0) {
          set.push_back({Site::kPattern, l, h, i});
          continue;
        }
        for (std::int64_t j = 0; j <= i; ++j)
          if (!live[cell_of(row, j)]) set.push_back({Site::kPattern, l, h, i, j});
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
