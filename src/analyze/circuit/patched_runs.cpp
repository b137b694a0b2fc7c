#include "analyze/circuit/patched_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <set>

#include "analyze/circuit/replacements.h"
#include "analyze/task/check.h"
#include "base/error.h"
#include "base/strings.h"

namespace filigree {
namespace {

constexpr Replacement kReplacements[] = {Replacement::kCorrupt, Replacement::kZero,
                                         Replacement::kMean, Replacement::kMeanByPosition};

// Where a run must start to see a target, in order of the computation: -1 the embeddings, 2 l
// before the attention of layer l, 2 l + 1 after it.
std::int64_t start_of(const PatchTarget& target) {
  if (target.site == Site::kEmbedding) return -1;
  const bool after = target.site == Site::kResidualMid || target.site == Site::kMlpOut;
  return 2 * target.layer + (after ? 1 : 0);
}

std::int64_t start_of(const PatchSet& set) {
  std::int64_t start = INT64_MAX;  // an empty set changes nothing
  for (const PatchTarget& target : set) start = std::min(start, start_of(target));
  return start;
}

std::string residual_tap(std::int64_t start) {
  return fmt::format("blocks.{}.hook_resid_{}", start / 2, start % 2 == 1 ? "mid" : "pre");
}

// The rows' positions from `first` on, `times` times over: [B, T, ...] -> [times B, T - first,
// ...].
Tensor repeated(const Tensor& values, std::int64_t times, std::int64_t first) {
  const Shape& shape = values.shape();
  const std::int64_t B = shape[0], T = shape[1], inner = shape.inner(1);
  std::vector<std::int64_t> extents(shape.extents().begin(), shape.extents().end());
  extents[0] = times * B, extents[1] = T - first;
  Tensor result = Tensor::empty(Shape(extents), values.dtype());
  const auto width = static_cast<std::size_t>((T - first) * inner) * size_of(values.dtype());
  const std::size_t step = static_cast<std::size_t>(T * inner) * size_of(values.dtype());
  const std::size_t skip = step - width;
  for (std::int64_t row = 0; row < times * B; ++row)
    std::memcpy(result.mutable_raw() + static_cast<std::size_t>(row) * width,
                values.raw() + static_cast<std::size_t>(row % B) * step + skip, width);
  return result;
}

// One batch of prompts: its clean and corrupt runs, and the patched ones.
class BatchRuns {
 public:
  BatchRuns(const Model& model, PromptRefs prompts, const std::vector<PatchSet>& sets,
            const PatchOptions& options, const Means* means)
      : model_(model), prompts_(std::move(prompts)), sets_(sets), options_(options) {
    length_ = prompts_[0]->length();
    rows_ = static_cast<std::int64_t>(prompts_.size());
    if (options.replacement == Replacement::kCorrupt) {
      first_ = length_;
      for (const TaskPrompt* prompt : prompts_)
        first_ = std::min(first_, prompt->first_difference());
    }
    std::set<std::string> residuals, targets;
    for (const PatchSet& set : sets) {
      const std::int64_t start = start_of(set);
      if (start >= 0 && start < INT64_MAX) residuals.insert(residual_tap(start));
      for (const PatchTarget& target : set) {
        check_target(target, model.config(), length_);
        targets.insert(tap_name(target));
      }
    }
    if (first_ > 0) clean_cache_ = model.make_cache(rows_, length_);
    clean_values_ = observed(model, prompts_, false, residuals, &clean_logits_, clean_cache_.get());
    const bool from_corrupt = options.replacement == Replacement::kCorrupt;
    replacements_ = observed(model, prompts_, true,
                             from_corrupt ? targets : std::set<std::string>(), &corrupt_logits_);
    if (means != nullptr) replacements_ = means->repeated(rows_, length_);
  }

  std::vector<double> clean() const { return metric_of(clean_logits_); }
  std::vector<double> corrupt() const { return metric_of(corrupt_logits_); }

  // The metric of sets that start at the same place, one after the other.
  std::vector<double> patched(const std::vector<std::size_t>& chosen) {
    const auto times = static_cast<std::int64_t>(chosen.size());
    const std::int64_t place = start_of(sets_[chosen[0]]);
    if (place == INT64_MAX) {
      std::vector<double> all;
      for (std::int64_t i = 0; i < times; ++i) {
        const std::vector<double> values = clean();
        all.insert(all.end(), values.begin(), values.end());
      }
      return all;
    }
    Taps taps;
    std::map<std::string, std::vector<std::pair<std::int64_t, PatchTarget>>> by_tap;
    for (std::int64_t i = 0; i < times; ++i)
      for (const PatchTarget& target : sets_[chosen[static_cast<std::size_t>(i)]])
        by_tap[tap_name(target)].emplace_back(i, target);
    for (const auto& [name, targets] : by_tap)
      taps.intervene(name, [this, &name, &targets](const Variable& value) {
        return replaced(name, targets, value);
      });
    ForwardStart start;
    if (place >= 0) {
      start.layer = place / 2, start.after_attention = place % 2 == 1;
      start.residual = repeated(clean_values_.at(residual_tap(place)), times, first_);
    }
    const Tensor ids = repeated(prompt_ids(prompts_, false), times, first_);
    return metric_of(model_
                         .forward(ids, {.taps = &taps,
                                        .start = place >= 0 ? &start : nullptr,
                                        .cache = prefix(times),
                                        .last_position_only = true})
                         .value());
  }

 private:
  std::vector<double> metric_of(const Tensor& logits) const {
    return measure(options_.metric, logits, prompts_, clean_logits_);
  }

  // `value` with the targets' elements in the blocks of rows of their sets replaced.
  Variable replaced(const std::string& name,
                    const std::vector<std::pair<std::int64_t, PatchTarget>>& targets,
                    const Variable& value) const {
    Tensor changed = value.value().clone();
    float* data = changed.mutable_f32();
    const bool zero = options_.replacement == Replacement::kZero;
    const float* from = zero ? nullptr : replacements_.at(name).f32();
    for (const auto& [set, target] : targets)
      for (std::int64_t row = 0; row < rows_; ++row)
        for_ranges(target, changed.shape(), set * rows_ + row, row, first_,
                   [&](std::int64_t offset, std::int64_t whole, std::int64_t count) {
                     if (zero)
                       std::fill_n(data + offset, count, 0.0f);
                     else
                       std::copy_n(from + whole, count, data + offset);
                   });
    return changed;
  }

  // The keys and values of the positions that are left out, for so many copies of the prompts; null
  // when there are none.
  KeyValueCache* prefix(std::int64_t times) {
    if (first_ == 0) return nullptr;
    if (prefix_ && prefix_->batch() == times * rows_) {
      prefix_->truncate(first_);
      return prefix_.get();
    }
    prefix_ = model_.make_cache(times * rows_, length_);
    for (std::int64_t layer = 0; layer < model_.config().layers; ++layer) {
      const auto begin = [&](const Tensor& all) {  // [B, length, G, D] -> [times B, first, G, D]
        const Shape& shape = all.shape();
        Tensor part = Tensor::empty({times * rows_, first_, shape[2], shape[3]});
        const std::int64_t width = first_ * shape[2] * shape[3];
        for (std::int64_t row = 0; row < times * rows_; ++row)
          std::copy_n(all.f32() + (row % rows_) * shape.inner(0), width,
                      part.mutable_f32() + row * width);
        return part;
      };
      prefix_->append(layer, begin(clean_cache_->keys(layer).on_host()),
                      begin(clean_cache_->values(layer).on_host()));
    }
    prefix_->advance(first_);
    return prefix_.get();
  }

  const Model& model_;
  PromptRefs prompts_;
  const std::vector<PatchSet>& sets_;
  const PatchOptions& options_;
  std::int64_t length_ = 0, rows_ = 0;
  std::int64_t first_ = 0;  // position at which patched runs begin
  Tensor clean_logits_, corrupt_logits_;
  TapValues clean_values_;  // residual streams to start from
  TapValues replacements_;
  std::unique_ptr<KeyValueCache> clean_cache_, prefix_;

 public:
  std::int64_t tokens() const { return rows_ * (length_ - first_); }
};

// The sets in groups that one forward pass takes: those with the same start, in even portions.
std::vector<std::vector<std::size_t>> portions(const std::vector<PatchSet>& sets,
                                               std::int64_t most) {
  std::map<std::int64_t, std::vector<std::size_t>> by_start;
  for (std::size_t i = 0; i < sets.size(); ++i) by_start[start_of(sets[i])].push_back(i);
  std::vector<std::vector<std::size_t>> all;
  for (const auto& [start, members] : by_start) {
    const auto count = static_cast<std::int64_t>(members.size());
    const std::int64_t parts = (count + most - 1) / most;
    for (std::int64_t part = 0; part < parts; ++part)
      all.emplace_back(members.begin() + part * count / parts,
                       members.begin() + (part + 1) * count / parts);
  }
  return all;
}

bool uses_means(Replacement replacement) {
  return replacement == Replacement::kMean || replacement == Replacement::kMeanByPosition;
}

}  // namespace

std::string_view name_of(Replacement replacement) {
  switch (replacement) {
    case Replacement::kCorrupt: return "corrupt";
    case Replacement::kZero: return "zero";
    case Replacement::kMean: return "mean";
    case Replacement::kMeanByPosition: return "mean-by-position";
  }
  return "unknown";
}

Replacement replacement_by_name(std::string_view name) {
  std::string known;
  for (const Replacement replacement : kReplacements) {
    if (name_of(replacement) == name) return replacement;
    known += (known.empty() ? "" : ", ") + std::string(name_of(replacement));
  }
  fail("there is no replacement '{}'; there are {}", printable(name), known);
}

PatchedRuns run_patched(const Model& model, const std::vector<TaskPrompt>& prompts,
                        const std::vector<PatchSet>& sets, const PatchOptions& options) {
  require(!prompts.empty(), "patching: there is no prompt");
  require(options.tokens_at_once > 0, "patching: tokens_at_once must be positive");
  std::optional<Means> means;
  if (uses_means(options.replacement)) {
    std::set<std::string> taps;
    for (const PatchSet& set : sets)
      for (const PatchTarget& target : set) {
        check_target(target, model.config(), INT64_MAX);
        taps.insert(tap_name(target));
      }
    means.emplace(model, prompts, taps, options.replacement, options.tokens_at_once);
  }
  // Several runs share a pass, so a batch of prompts takes a part of it only.
  const std::vector<std::vector<std::size_t>> batches =
      batches_of(prompts, std::max<std::int64_t>(options.tokens_at_once / 8, 1));
  PatchedRuns result;
  result.clean.resize(prompts.size());
  result.corrupt.resize(prompts.size());
  result.patched.assign(sets.size(), std::vector<double>(prompts.size()));
  const auto total = static_cast<std::int64_t>(batches.size() * sets.size());
  std::int64_t done = 0;
  for (const std::vector<std::size_t>& batch : batches) {
    PromptRefs refs;
    for (const std::size_t i : batch) refs.push_back(&prompts[i]);
    BatchRuns runs(model, refs, sets, options, means ? &*means : nullptr);
    const std::vector<double> clean = runs.clean(), corrupt = runs.corrupt();
    for (std::size_t i = 0; i < batch.size(); ++i) {
      result.clean[batch[i]] = clean[i];
      result.corrupt[batch[i]] = corrupt[i];
    }
    const std::int64_t most = std::max<std::int64_t>(options.tokens_at_once / runs.tokens(), 1);
    for (const std::vector<std::size_t>& portion : portions(sets, most)) {
      const std::vector<double> values = runs.patched(portion);
      for (std::size_t i = 0; i < portion.size(); ++i)
        for (std::size_t j = 0; j < batch.size(); ++j)
          result.patched[portion[i]][batch[j]] = values[i * batch.size() + j];
      done += static_cast<std::int64_t>(portion.size());
      if (options.progress) options.progress(done, total);
    }
  }
  return result;
}

}  // namespace filigree
