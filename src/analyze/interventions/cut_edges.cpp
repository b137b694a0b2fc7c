#include "analyze/interventions/cut_edges.h"

#include <algorithm>

#include "filigree/taps.h"

namespace filigree {
namespace {

// Whether nothing of what the run itself computes is left.
bool replaces(const Change& change) {
  return change.kind != ChangeKind::kScale || change.factor == 0;
}

}  // namespace

std::vector<CutEdges> cut_edges(const Interventions& interventions, const ModelConfig& config,
                                std::int64_t length) {
  const std::int64_t heads_of_a_key_head = config.heads / config.key_heads;
  std::vector<CutEdges> cut;
  for (const Change& change : interventions.changes) {
    if (!replaces(change)) continue;
    const TapPlace& place = change.place;
    std::optional<std::int64_t> position = place.position;
    if (position && *position < 0) *position += length;
    for (std::int64_t layer = 0; layer < config.layers; ++layer)
      for (const Site site : {Site::kZ, Site::kValue, Site::kAttentionOut}) {
        if (!tap_matches(place.tap, tap_name({.site = site, .layer = layer}))) continue;
        for (std::int64_t head = 0; head < config.heads; ++head) {
          const std::int64_t named = site == Site::kValue ? head / heads_of_a_key_head : head;
          if (has_heads(site) && place.head && *place.head != named) continue;
          CutEdges edges = {{layer, head}};
          (site == Site::kValue ? edges.key : edges.query) = position;
          if (std::find(cut.begin(), cut.end(), edges) == cut.end()) cut.push_back(edges);
        }
      }
  }
  return cut;
}

bool is_cut(std::span<const CutEdges> cut, const HeadId& head, std::int64_t query,
            std::int64_t key) {
  return std::any_of(cut.begin(), cut.end(), [&](const CutEdges& edges) {
    return edges.head == head && edges.query.value_or(query) == query &&
           edges.key.value_or(key) == key;
  });
}

}  // namespace filigree
