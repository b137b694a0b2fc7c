#include <algorithm>
#include <map>
#include <utility>

#include "filigree/circuit.h"
#include "filigree/error.h"
#include "filigree/lens.h"

namespace filigree {
namespace {

void check_options(const SweepOptions& options) {
  require(options.site != Site::kEmbedding,
          "patch sweep: the embedding is of no layer; the residual of layer 0 is the same place");
  require(options.axis != SweepAxis::kExpert || options.site == Site::kExpertOut,
          "patch sweep: {} has no experts; sweep it by layer and position", name_of(options.site));
  require(options.axis != SweepAxis::kHead || has_heads(options.site),
          "patch sweep: {} has no heads; sweep it by layer and position", name_of(options.site));
  if (options.direction == PatchDirection::kNoising) return;
  require(options.patch.replacement == Replacement::kCorrupt,
          "patch sweep: denoising puts clean values into the corrupt run; {} values go with "
          "noising",
          name_of(options.patch.replacement));
  require(options.patch.metric != Metric::kKl,
          "patch sweep: kl compares with the clean prediction, which denoising does not start "
          "from; choose another metric or noising");
}

std::vector<TaskPrompt> swapped(std::vector<TaskPrompt> prompts) {
  for (TaskPrompt& prompt : prompts) {
    std::swap(prompt.clean, prompt.corrupt);
    std::swap(prompt.text.clean, prompt.text.corrupt);
  }
  return prompts;
}

std::int64_t shortest(const std::vector<TaskPrompt>& prompts) {
  std::int64_t length = prompts[0].length();
  for (const TaskPrompt& prompt : prompts) length = std::min(length, prompt.length());
  return length;
}

// The runs of all sets, whose positions are counted from the end, on prompts of every length.
PatchedRuns run_from_end(const Model& model, const std::vector<TaskPrompt>& prompts,
                         const std::vector<PatchSet>& sets, const PatchOptions& options) {
  std::map<std::int64_t, std::vector<std::size_t>> by_length;
  for (std::size_t i = 0; i < prompts.size(); ++i) by_length[prompts[i].length()].push_back(i);
  PatchedRuns all;
  all.clean.resize(prompts.size());
  all.corrupt.resize(prompts.size());
  all.patched.assign(sets.size(), std::vector<double>(prompts.size()));
  for (const auto& [length, members] : by_length) {
    std::vector<TaskPrompt> group;
    for (const std::size_t i : members) group.push_back(prompts[i]);
    std::vector<PatchSet> shifted = sets;
    for (PatchSet& set : shifted)
      for (PatchTarget& target : set) target.position += length;
    const PatchedRuns runs = run_patched(model, group, shifted, options);
    for (std::size_t g = 0; g < members.size(); ++g) {
      all.clean[members[g]] = runs.clean[g];
      all.corrupt[members[g]] = runs.corrupt[g];
      for (std::size_t s = 0; s < sets.size(); ++s) all.patched[s][members[g]] = runs.patched[s][g];
    }
  }
  return all;
}

}  // namespace

PatchSweep sweep_patches(const Model& model, const std::vector<TaskPrompt>& given,
                         const SweepOptions& options) {
  check_options(options);
  require(!given.empty(), "patch sweep: there is no prompt");
  const bool denoising = options.direction == PatchDirection::kDenoising;
  const std::vector<TaskPrompt> prompts = denoising ? swapped(given) : given;
  const ModelConfig& config = model.config();
  PatchSweep sweep;
  sweep.layers = config.layers;
  const bool by_head = options.axis == SweepAxis::kHead,
             by_position = options.axis == SweepAxis::kPosition;
  const bool key_heads = options.site == Site::kKey || options.site == Site::kValue;
  if (options.site == Site::kExpertOut) check_target({.site = options.site}, config, INT64_MAX);
  sweep.columns = by_position ? shortest(prompts)
                  : !by_head  ? config.experts
                  : key_heads ? config.key_heads
                              : config.heads;
  sweep.from_end =
      by_position && std::any_of(prompts.begin(), prompts.end(), [&](const auto& prompt) {
        return prompt.length() != sweep.columns;
      });
  // Before the first token that differs both runs agree: nothing is replaced there, so that zero is
  // exactly zero and not what rounding leaves of it.
  const bool from_corrupt = options.patch.replacement == Replacement::kCorrupt;
  const auto differs = [&](std::int64_t column) {
    return !from_corrupt || !by_position ||
           std::any_of(prompts.begin(), prompts.end(), [&](const TaskPrompt& prompt) {
             return prompt.first_difference() <= prompt.length() - sweep.columns + column;
           });
  };
  std::vector<PatchSet> sets;
  for (std::int64_t layer = 0; layer < sweep.layers; ++layer)
    for (std::int64_t column = 0; column < sweep.columns; ++column) {
      PatchTarget target = {options.site, layer};
      if (by_head)
        target.head = column;
      else if (!by_position)
        target.expert = column;
      else
        target.position = sweep.from_end ? column - sweep.columns : column;
      sets.push_back(differs(column) ? PatchSet{target} : PatchSet{});
    }
  const PatchedRuns runs = sweep.from_end ? run_from_end(model, prompts, sets, options.patch)
                                          : run_patched(model, prompts, sets, options.patch);
  // A curve's effect is what is left of the difference between the run that is patched and the one
  // that the values come from; both directions want what is not left.
  const std::vector<CurvePoint> points =
      curve_points(std::vector<std::size_t>(sets.size(), 0), runs);
  for (const CurvePoint& point : points) sweep.effects.push_back({1 - point.effect, point.error});
  sweep.clean = estimate(denoising ? runs.corrupt : runs.clean);
  sweep.corrupt = estimate(denoising ? runs.clean : runs.corrupt);
  return sweep;
}

std::vector<TokenId> common_tokens(const std::vector<TaskPrompt>& prompts) {
  if (prompts.empty()) return {};
  const auto columns = static_cast<std::size_t>(shortest(prompts));
  std::vector<TokenId> tokens(prompts[0].clean.end() - static_cast<std::ptrdiff_t>(columns),
                              prompts[0].clean.end());
  for (const TaskPrompt& prompt : prompts)
    for (std::size_t i = 0; i < columns; ++i)
      if (prompt.clean[prompt.clean.size() - columns + i] != tokens[i]) tokens[i] = -1;
  return tokens;
}

}  // namespace filigree
