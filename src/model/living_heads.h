// Which heads of a model open an edge at all on a text, and how wide those are. The share of open
// edges, and keys per query and head, are means over all heads: in a model most of whose heads are
// dead they say little of the few that live.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/component.h"

namespace filigree {

struct LivingHead {
  HeadId head = {};
  double keys_per_query = 0;  // over all queries, those without an open edge too
  double edges_share = 0;     // of the open edges of all heads
};

struct LivingHeads {
  std::int64_t heads = 0;               // that were looked at
  std::vector<LivingHead> living = {};  // layer by layer
  std::int64_t queries = 0;             // positions that were looked at

  bool lives(const HeadId& head) const;
  // Of the living heads' keys per query; nothing where none lives.
  std::optional<double> median_keys() const;
  std::optional<LivingHead> widest() const;
  // What the `count` heads with most open edges have of all; 0 where none is open.
  double share_of_widest(std::size_t count) const;
};

// From the open edges of heads, over so many queries.
LivingHeads living_heads(std::span<const HeadId> heads, std::span<const double> open_edges,
                         std::int64_t queries);

}  // namespace filigree
