#include "filigree/analyze/statistics/statistics.h"

#include <fmt/format.h>

#include "filigree/base/error.h"
#include "filigree/runtime/threads.h"

namespace filigree {

std::string HeadGroup::name() const {
  if (scope == Scope::kModel) return "model";
  return scope == Scope::kLayer ? layer_name(layer) : head_name({layer, head});
}

std::vector<HeadGroup> groups_of(const std::vector<HeadId>& heads) {
  std::vector<HeadGroup> groups = {{HeadGroup::Scope::kModel, -1, -1, 0, heads.size()}};
  for (std::size_t s = 0; s < heads.size(); ++s) {
    if (groups.back().scope != HeadGroup::Scope::kLayer || groups.back().layer != heads[s].layer)
      groups.push_back({HeadGroup::Scope::kLayer, heads[s].layer, -1, s, 0});
    ++groups.back().count;
  }
  for (std::size_t s = 0; s < heads.size(); ++s)
    groups.push_back({HeadGroup::Scope::kHead, heads[s].layer, heads[s].head, s, 1});
  return groups;
}

AttentionStatistics::AttentionStatistics(std::vector<HeadId> heads, std::size_t prompts)
    : heads_(std::move(heads)),
      prompts_(prompts),
      groups_(groups_of(heads_)),
      values_(heads_.size() * prompts) {
  require(!heads_.empty() && prompts_ > 0, "statistics: {} heads and {} prompts; both are needed",
          heads_.size(), prompts_);
}

void AttentionStatistics::add(std::span<const HeadMap> heads) {
  parallel_for(static_cast<std::int64_t>(heads.size()), 1,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t h = begin; h < end; ++h) {
                   const HeadMap& head = heads[static_cast<std::size_t>(h)];
                   values_.at(head.prompt * heads_.size() + head.slot) =
                       map_statistics(head.weights, head.gate, head.length, head.window);
                 }
               });
}

std::vector<double> AttentionStatistics::series(const HeadGroup& group, Statistic statistic) const {
  std::vector<double> result(prompts_, 0.0);
  for (std::size_t p = 0; p < prompts_; ++p) {
    for (std::size_t s = group.first; s < group.first + group.count; ++s)
      result[p] += values_[p * heads_.size() + s][static_cast<std::size_t>(statistic)];
    result[p] /= static_cast<double>(group.count);
  }
  return result;
}

double AttentionStatistics::mean(const HeadGroup& group, Statistic statistic) const {
  double sum = 0.0;
  for (const double value : series(group, statistic)) sum += value;
  return sum / static_cast<double>(prompts_);
}

}  // namespace filigree
