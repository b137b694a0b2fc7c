// Runs that are one until they part.
//
// Sets that replace the same in the first layers, as those of a curve do that differ by one part
// each, have the same residual stream up to the layer in which they differ. Such runs are computed
// as one branch, segment of layers after segment: a branch parts where its runs do.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "filigree/interventions.h"

namespace filigree {

// Layers in which no branch parts.
struct RunSegment {
  std::int64_t first = 0, end = 0;
  std::vector<std::vector<std::size_t>> branches = {};  // numbers of runs, those that are one
  std::vector<std::int64_t> parents = {};  // of each branch: that of the segment before; 0 at first
  // By tap: branches and what is replaced in them, branch by branch.
  std::map<std::string, std::vector<std::pair<std::int64_t, PatchTarget>>> changes = {};
};

// From `first` to the last of `layers`; the first segment has what is replaced before it too.
std::vector<RunSegment> run_segments_of(const std::vector<const PatchSet*>& runs,
                                        std::int64_t first, std::int64_t layers);

// Calls body(tap, begin, end) for neighbours in a set that have one tap: a set may hold thousands
// of cells, and naming a tap takes longer than patching one.
template <typename Body>
void for_taps(const PatchSet& set, Body&& body) {
  const PatchTarget *begin = set.data(), *end = begin + set.size();
  while (begin != end) {
    const PatchTarget* next = begin;
    while (next != end && next->site == begin->site && next->layer == begin->layer) ++next;
    body(tap_name(*begin), begin, next);
    begin = next;
  }
}

}  // namespace filigree
