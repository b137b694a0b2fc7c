#include "filigree/statistics.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "filigree/error.h"
#include "filigree/runtime.h"

namespace filigree {
namespace {

// Beyond, memory would grow with the number of prompts: 256 MB.
constexpr std::size_t kMostConnections = std::size_t{1} << 26;

}  // namespace

std::string_view heading_of(Over over) {
  switch (over) {
    case Over::kAll: return "all heads, all rows";
    case Over::kAttendingRows: return "all heads, rows that attend";
    case Over::kLivingHeads: return "living heads, all rows";
    case Over::kLivingHeadsAttendingRows: break;
  }
  return "living heads, rows that attend";
}

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
      values_(heads_.size() * prompts),
      lengths_(prompts, 0) {
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
  for (const HeadMap& head : heads) {
    lengths_[head.prompt] = head.length;
    kept_connections_ += values_[head.prompt * heads_.size() + head.slot].connections.size();
  }
  if (connections_kept_ && kept_connections_ <= kMostConnections) return;
  connections_kept_ = false;
  for (MapStatistics& values : values_) std::vector<std::uint32_t>().swap(values.connections);
}

void AttentionStatistics::add_reads(std::size_t prompt, std::size_t slot,
                                    const std::array<double, 3>& shares,
                                    const std::array<double, 3>& heads) {
  MapStatistics& values = values_.at(prompt * heads_.size() + slot);
  const double attends = values.attending_weight[static_cast<std::size_t>(Statistic::kEmptyRows)];
  const auto set = [&](Statistic statistic, double value) {
    const auto s = static_cast<std::size_t>(statistic);
    values.all[s] = values.attending_sum[s] = value;
    values.attending_weight[s] = attends;
  };
  for (std::size_t kind = 0; kind < 3; ++kind) {
    set(static_cast<Statistic>(static_cast<std::size_t>(Statistic::kReadsHeadsQ) + kind),
        shares[kind]);
    set(static_cast<Statistic>(static_cast<std::size_t>(Statistic::kCrossLayerQ) + kind),
        heads[kind]);
  }
}

std::vector<bool> AttentionStatistics::living() const {
  std::vector<bool> living(heads_.size(), false);
  for (std::size_t p = 0; p < prompts_; ++p)
    for (std::size_t s = 0; s < heads_.size(); ++s)
      if (values_[p * heads_.size() + s].all[static_cast<std::size_t>(Statistic::kKeysPerQuery)] >
          0.0)
        living[s] = true;
  return living;
}

LivingHeads AttentionStatistics::living_heads() const {
  std::vector<double> open(heads_.size(), 0.0);
  std::int64_t queries = 0;
  for (std::size_t p = 0; p < prompts_; ++p) {
    queries += lengths_[p];
    for (std::size_t s = 0; s < heads_.size(); ++s)
      open[s] +=
          values_[p * heads_.size() + s].all[static_cast<std::size_t>(Statistic::kKeysPerQuery)] *
          static_cast<double>(lengths_[p]);
  }
  return filigree::living_heads(heads_, open, queries);
}

std::vector<double> AttentionStatistics::series(const HeadGroup& group, Statistic statistic,
                                                Over over, const std::vector<bool>& living) const {
  const auto number = static_cast<std::size_t>(statistic);
  std::vector<double> result(prompts_, 0.0);
  for (std::size_t p = 0; p < prompts_; ++p) {
    double sum = 0.0, weight = 0.0;
    for (std::size_t s = group.first; s < group.first + group.count; ++s) {
      if (of_living_heads(over) && !living[s]) continue;
      const MapStatistics& values = values_[p * heads_.size() + s];
      sum += of_attending_rows(over) ? values.attending_sum[number] : values.all[number];
      weight += of_attending_rows(over) ? values.attending_weight[number] : 1.0;
    }
    result[p] = weight > 0.0 ? sum / weight : std::numeric_limits<double>::quiet_NaN();
  }
  return result;
}

std::vector<double> AttentionStatistics::series(const HeadGroup& group, Statistic statistic,
                                                Over over) const {
  return series(group, statistic, over, of_living_heads(over) ? living() : std::vector<bool>());
}

double AttentionStatistics::mean(const HeadGroup& group, Statistic statistic, Over over) const {
  double sum = 0.0, count = 0.0;
  for (const double value : series(group, statistic, over))
    if (!std::isnan(value)) sum += value, count += 1.0;
  return count > 0.0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
}

const std::vector<std::uint32_t>* AttentionStatistics::connections(std::size_t prompt,
                                                                   std::size_t slot) const {
  return connections_kept_ ? &values_.at(prompt * heads_.size() + slot).connections : nullptr;
}

}  // namespace filigree
