#include <algorithm>
#include <numeric>

#include "filigree/model.h"

namespace filigree {

bool LivingHeads::lives(const HeadId& head) const {
  return std::any_of(living.begin(), living.end(),
                     [&](const LivingHead& one) { return one.head == head; });
}

std::optional<double> LivingHeads::median_keys() const {
  if (living.empty()) return std::nullopt;
  std::vector<double> keys;
  for (const LivingHead& head : living) keys.push_back(head.keys_per_query);
  std::sort(keys.begin(), keys.end());
  const std::size_t middle = keys.size() / 2;
  return keys.size() % 2 == 1 ? keys[middle] : 0.5 * (keys[middle - 1] + keys[middle]);
}

std::optional<LivingHead> LivingHeads::widest() const {
  if (living.empty()) return std::nullopt;
  return *std::max_element(
      living.begin(), living.end(),
      [](const LivingHead& a, const LivingHead& b) { return a.keys_per_query < b.keys_per_query; });
}

double LivingHeads::share_of_widest(std::size_t count) const {
  std::vector<double> shares;
  for (const LivingHead& head : living) shares.push_back(head.edges_share);
  std::sort(shares.rbegin(), shares.rend());
  shares.resize(std::min(count, shares.size()));
  return std::accumulate(shares.begin(), shares.end(), 0.0);
}

LivingHeads living_heads(std::span<const HeadId> heads, std::span<const double> open_edges,
                         std::int64_t queries) {
  LivingHeads found;
  found.heads = static_cast<std::int64_t>(heads.size());
  found.queries = queries;
  const double all = std::accumulate(open_edges.begin(), open_edges.end(), 0.0);
  for (std::size_t h = 0; h < heads.size(); ++h)
    if (open_edges[h] > 0)
      found.living.push_back(
          {heads[h], open_edges[h] / static_cast<double>(queries), open_edges[h] / all});
  return found;
}

}  // namespace filigree
