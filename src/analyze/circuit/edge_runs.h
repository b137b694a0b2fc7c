// Runs in which single edges of the component graph carry the values of the corrupt prompts.
//
// An input v of such a run reads
//
//   in_v = stream(run) + sum over its patched edges u of ( x_u(corrupt) - x_u(run) )
//
// so that one patched edge is the clean run with x_u(corrupt) - x_u(clean) added to what v alone
// reads, all edges patched are the corrupt run, and none the clean one. What is the same in all
// runs is computed once, as in filigree/circuit.h.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/circuit/graph.h"
#include "filigree/circuit.h"

namespace filigree {

// The edges of one run, by number: these patched and the others clean, or these kept and the others
// patched.
struct EdgeSet {
  bool kept = false;
  std::vector<std::int64_t> edges = {};  // no number twice
};

// Runs every set on every prompt. Throws Error for a replacement other than kCorrupt and for edges
// that the graph does not have.
PatchedRuns run_edges(const Model& model, const ComponentGraph& graph,
                      const std::vector<TaskPrompt>& prompts, const std::vector<EdgeSet>& sets,
                      const PatchOptions& options = {});

// The tap at which an input reads the residual stream.
std::string tap_name(const ComponentInput& input);
// The tap of a node's output; heads of a layer share one (head_outputs.h).
std::string tap_name(const Component& node);

}  // namespace filigree
