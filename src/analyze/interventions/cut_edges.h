// The edges of attention that carry nothing in a changed run, whatever weight the head gives them:
// those into a z, of a v and below an attn-out that is ablated, multiplied by 0 or patched. Edges
// that a change of the pattern or the gate closes have weight 0 already.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "filigree/interventions.h"
#include "filigree/model.h"
#include "filigree/names.h"

namespace filigree {

// Edges of one head, from a query, to a key; none: from every query, to every key.
struct CutEdges {
  HeadId head = {};
  std::optional<std::int64_t> query = {}, key = {};

  friend bool operator==(const CutEdges&, const CutEdges&) = default;
};

// Of a run on a text of `length` tokens, from whose end negative positions count. Positions that
// are named by tokens must have been resolved.
std::vector<CutEdges> cut_edges(const Interventions& interventions, const ModelConfig& config,
                                std::int64_t length);

bool is_cut(std::span<const CutEdges> cut, const HeadId& head, std::int64_t query,
            std::int64_t key);

}  // namespace filigree
