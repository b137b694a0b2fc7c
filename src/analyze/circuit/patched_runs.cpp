#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "analyze/circuit/circuit_sweep.h"
#include "analyze/circuit/clean_run.h"
#include "analyze/circuit/run_segments.h"
#include "filigree/circuit.h"
#include "filigree/error.h"
#include "filigree/tasks.h"
#include "ops/regions/regions.h"

namespace filigree {
namespace {

// Tokens whose corrupt values lie in memory together, of all taps.
constexpr std::int64_t kTokensOfMeans = 4096;

// The last place (clean_run.h) from which a run sees a target.
std::int64_t start_of(const PatchTarget& target, const ModelConfig& config) {
  if (target.site == Site::kEmbedding) return -1;
  const bool after = target.site == Site::kResidualMid || target.site == Site::kMlpOut ||
                     target.site == Site::kExpertOut;
  const bool between = config.residual == ResidualKind::kSequential;
  return 2 * target.layer + (after && between ? 1 : 0);
}

std::int64_t start_of(const PatchSet& set, const ModelConfig& config) {
  std::int64_t start = kNowhere;  // an empty set changes nothing
  for (const PatchTarget& target : set) start = std::min(start, start_of(target, config));
  return start;
}

std::vector<std::int64_t> starts_of(const std::vector<PatchSet>& sets, const ModelConfig& config) {
  std::vector<std::int64_t> starts;
  for (const PatchSet& set : sets) starts.push_back(start_of(set, config));
  return starts;
}

bool has_experts(const std::vector<PatchSet>& sets) {
  return std::any_of(sets.begin(), sets.end(), [](const PatchSet& set) {
    return std::any_of(set.begin(), set.end(),
                       [](const PatchTarget& target) { return target.site == Site::kExpertOut; });
  });
}

// The elements of a target in one row of the batch, as regions as large as they can be, with the
// replacement's elements as their source or none.
void add_regions(const PatchTarget& target, const Shape& extents, std::int64_t row,
                 std::int64_t whole_row, std::int64_t first, bool with_source, RegionList& list) {
  bool open = false;
  for_ranges(
      target, extents, row, whole_row, first,
      [&](std::int64_t offset, std::int64_t whole, std::int64_t count) {
        if (open) {  // one block more, at the same step as those before it?
          Region& region = list.regions.back();
          const std::int64_t step = offset - (region.to + (region.blocks - 1) * region.step);
          RegionSource* source = with_source ? &list.sources.back() : nullptr;
          const std::int64_t from_step =
              source == nullptr ? 0 : whole - (source->offset + (region.blocks - 1) * source->step);
          const bool second = region.blocks == 1;
          if (count == region.count && (second || step == region.step) &&
              (source == nullptr || second || from_step == source->step)) {
            region.step = step;
            if (source != nullptr) source->step = from_step;
            ++region.blocks;
            return;
          }
        }
        list.begin(offset, count, 1, 0);
        if (with_source) list.add({0, whole, 0});
        open = true;
      });
}

// One batch of prompts: its clean and corrupt runs, and the patched ones.
class BatchRuns final : public SweepBatch {
 public:
  BatchRuns(const Model& model, const PromptRefs& prompts, const std::vector<PatchSet>& sets,
            const std::vector<std::int64_t>& starts, const PatchOptions& options,
            const Means* means)
      : layers_(model.config().layers),
        sets_(sets),
        starts_(starts),
        options_(options),
        all_experts_(has_experts(sets)),
        run_(model, prompts, options.replacement == Replacement::kCorrupt,
             {starts.begin(), starts.end()}) {
    std::set<std::string> targets;
    for (const PatchSet& set : sets)
      for_taps(set, [&](const std::string& tap, const PatchTarget*, const PatchTarget*) {
        targets.insert(tap);
      });
    const bool from_corrupt = options.replacement == Replacement::kCorrupt;
    replacements_ = observed(model, prompts, true, from_corrupt ? targets : std::set<std::string>(),
                             &corrupt_logits_);
    if (means != nullptr) replacements_ = means->for_rows(run_.rows(), run_.length());
  }

  std::vector<double> clean() const override { return metric_of(run_.logits()); }
  std::vector<double> corrupt() const override { return metric_of(corrupt_logits_); }
  std::int64_t tokens() const override { return run_.tokens(); }
  std::int64_t bytes() const override { return run_.bytes(false, all_experts_); }

  // The metric of sets that start at the same place, one after the other.
  std::vector<double> changed(const std::vector<std::size_t>& chosen) override {
    std::int64_t place = starts_[chosen[0]];
    if (place == kNowhere) return clean_of(static_cast<std::int64_t>(chosen.size()));
    std::vector<const PatchSet*> runs;
    for (const std::size_t set : chosen) runs.push_back(&sets_[set]);
    const std::vector<RunSegment> segments =
        run_segments_of(runs, std::max<std::int64_t>(place / 2, 0), layers_);
    Tensor stream = run_.stream_at(place);
    for (const RunSegment& segment : segments) {
      if (stream.defined()) stream = chosen_blocks(stream, run_.rows(), segment.parents);
      Taps taps;
      for (const auto& entry : segment.changes)
        taps.intervene(entry.first, [this, &entry](const Variable& value) {
          return replaced(entry.first, entry.second, value);
        });
      const auto times = static_cast<std::int64_t>(segment.branches.size());
      const std::optional<std::int64_t> end =
          segment.end < layers_ ? std::optional(segment.end) : std::nullopt;
      stream = run_.go_on(place, stream, times, end, taps);
      place = 2 * segment.end;
    }
    return of_runs(segments.back().branches, metric_of(stream), chosen.size());
  }

 private:
  // The branches' metrics as those of their runs, one after the other.
  std::vector<double> of_runs(const std::vector<std::vector<std::size_t>>& branches,
                              const std::vector<double>& metrics, std::size_t runs) const {
    const auto rows = static_cast<std::size_t>(run_.rows());
    std::vector<double> result(runs * rows);
    for (std::size_t b = 0; b < branches.size(); ++b)
      for (const std::size_t run : branches[b])
        std::copy_n(metrics.begin() + static_cast<std::ptrdiff_t>(b * rows), rows,
                    result.begin() + static_cast<std::ptrdiff_t>(run * rows));
    return result;
  }

  std::vector<double> metric_of(const Tensor& logits) const {
    return measure(options_.metric, logits, run_.prompts(), run_.logits());
  }

  // `value` with the targets' elements in the blocks of rows of their branches replaced.
  Variable replaced(const std::string& name,
                    const std::vector<std::pair<std::int64_t, PatchTarget>>& targets,
                    const Variable& value) const {
    Tensor changed = value.value().clone();
    const bool zero = options_.replacement == Replacement::kZero;
    RegionList list;
    for (std::size_t i = 1; i < targets.size(); ++i)  // they come run by run
      list.overlap = list.overlap || targets[i].first == targets[i - 1].first;
    for (const auto& [branch, target] : targets)
      for (std::int64_t row = 0; row < run_.rows(); ++row)
        add_regions(target, changed.shape(), branch * run_.rows() + row, row, run_.first(), !zero,
                    list);
    write_regions(changed, zero ? std::vector<Tensor>() : std::vector{replacements_.at(name)},
                  list);
    return changed;
  }

  const std::int64_t layers_;
  const std::vector<PatchSet>& sets_;
  const std::vector<std::int64_t>& starts_;
  const PatchOptions& options_;
  const bool all_experts_;  // computed where one of them is changed
  CleanRun run_;
  Tensor corrupt_logits_;
  TapValues replacements_;
};

bool uses_means(Replacement replacement) {
  return replacement == Replacement::kMean || replacement == Replacement::kMeanByPosition;
}

}  // namespace

PatchedRuns run_patched(const Model& model, const std::vector<TaskPrompt>& prompts,
                        const std::vector<PatchSet>& sets, const PatchOptions& options) {
  require(!prompts.empty(), "patching: there is no prompt");
  const SweepLimits limits =
      patch_limits(options, device_memory(model), model.config(), has_experts(sets));
  std::optional<Means> means;
  if (uses_means(options.replacement)) {
    std::set<std::string> taps;
    for (const PatchSet& set : sets)
      for (const PatchTarget& target : set) {
        check_target(target, model.config(), INT64_MAX);
        taps.insert(tap_name(target));
      }
    means.emplace(model, prompts, taps, options.replacement,
                  std::min(limits.pass_tokens, kTokensOfMeans));
  }
  const std::vector<std::int64_t> starts = starts_of(sets, model.config());
  return sweep(prompts, starts, limits, options, [&](const PromptRefs& batch) {
    for (const PatchSet& set : sets)
      for (const PatchTarget& target : set)
        check_target(target, model.config(), batch[0]->length());
    return std::make_unique<BatchRuns>(model, batch, sets, starts, options,
                                       means ? &*means : nullptr);
  });
}

}  // namespace filigree
