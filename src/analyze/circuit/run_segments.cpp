#include "analyze/circuit/run_segments.h"

namespace filigree {
namespace {

using ByLayer = std::map<std::int64_t, PatchSet>;

// What is replaced before `first` (the embeddings) counts as its.
ByLayer by_layer(const PatchSet& set, std::int64_t first) {
  ByLayer result;
  for (const PatchTarget& target : set) {
    const bool before = target.site == Site::kEmbedding || target.layer < first;
    result[before ? first : target.layer].push_back(target);
  }
  return result;
}

bool same_at(const ByLayer& a, const ByLayer& b, std::int64_t layer) {
  const auto in_a = a.find(layer), in_b = b.find(layer);
  if (in_a == a.end() || in_b == b.end()) return (in_a == a.end()) == (in_b == b.end());
  return in_a->second == in_b->second;
}

// The first layer from `layer` on in which runs of one branch differ; `layers` when there is none.
std::int64_t parting_layer(const std::vector<std::vector<std::size_t>>& branches,
                           const std::vector<ByLayer>& runs, std::int64_t layer,
                           std::int64_t layers) {
  for (; layer < layers; ++layer)
    for (const std::vector<std::size_t>& branch : branches)
      for (const std::size_t run : branch)
        if (!same_at(runs[branch[0]], runs[run], layer)) return layer;
  return layers;
}

// The segment that begins where the branches part in `layer`.
RunSegment parted(const std::vector<std::vector<std::size_t>>& branches,
                  const std::vector<ByLayer>& runs, std::int64_t layer) {
  RunSegment segment;
  segment.first = layer;
  for (std::size_t parent = 0; parent < branches.size(); ++parent) {
    const std::size_t first = segment.branches.size();
    for (const std::size_t run : branches[parent]) {
      std::size_t b = first;
      while (b < segment.branches.size() &&
             !same_at(runs[segment.branches[b][0]], runs[run], layer))
        ++b;
      if (b == segment.branches.size()) {
        segment.branches.emplace_back();
        segment.parents.push_back(static_cast<std::int64_t>(parent));
      }
      segment.branches[b].push_back(run);
    }
  }
  return segment;
}

}  // namespace

std::vector<RunSegment> run_segments_of(const std::vector<const PatchSet*>& runs,
                                        std::int64_t first, std::int64_t layers) {
  std::vector<ByLayer> targets;
  std::vector<std::vector<std::size_t>> branches(1);
  for (std::size_t run = 0; run < runs.size(); ++run) {
    targets.push_back(by_layer(*runs[run], first));
    branches[0].push_back(run);
  }
  std::vector<RunSegment> segments;
  for (std::int64_t layer = first; layer < layers; layer = segments.back().end) {
    RunSegment segment = parted(branches, targets, layer);
    segment.end = parting_layer(segment.branches, targets, layer + 1, layers);
    for (std::size_t b = 0; b < segment.branches.size(); ++b) {
      const ByLayer& of_branch = targets[segment.branches[b][0]];
      for (auto of_layer = of_branch.lower_bound(layer);
           of_layer != of_branch.end() && of_layer->first < segment.end; ++of_layer)
        for_taps(of_layer->second,
                 [&](const std::string& tap, const PatchTarget* begin, const PatchTarget* end) {
                   auto& list = segment.changes[tap];
                   for (const PatchTarget* target = begin; target != end; ++target)
                     list.emplace_back(static_cast<std::int64_t>(b), *target);
                 });
    }
    branches = segment.branches;
    segments.push_back(std::move(segment));
  }
  return segments;
}

}  // namespace filigree
