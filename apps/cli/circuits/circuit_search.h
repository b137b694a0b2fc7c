// The circuit of one model: the parts a task needs, by score, selection and curve, whatever kind of
// part was asked for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/cli/circuits/task_input.h"
#include "apps/cli/program/session.h"
#include "filigree/analyze/circuit/attention_edges.h"
#include "filigree/analyze/circuit/circuit.h"
#include "filigree/analyze/circuit/published.h"
#include "filigree/analyze/circuit/sweep_state.h"
#include "filigree/analyze/maps/head_selection.h"
#include "filigree/base/circuit_graph.h"

namespace filigree::cli {

enum class Parts { kHeads, kHeadsAndMlps, kEdges, kAttentionEdges };
enum class Method { kExact, kAttribution, kIntegrated };
enum class Selection { kTop, kGreedy, kGreedyAddition };

// Names as a user gives and reads them: "heads+mlps", "ig", "top-k".
std::string_view name_of(Parts parts);
std::string_view name_of(Method method);
std::string_view name_of(Selection selection);
// "heads", "heads and MLPs", "edges", "attention edges".
std::string_view plural_of(Parts parts);

struct SearchOptions {
  Parts parts = Parts::kHeads;
  Method method = Method::kExact;
  Selection selection = Selection::kTop;
  Replacement replacement = Replacement::kCorrupt;
  int steps = 5;               // of kIntegrated
  std::size_t candidates = 8;  // of greedy selections of heads; 0: all
  double level = 0.9;
  // Of heads: the curve has circuits of every size, or only of as many as show its form.
  bool every_size = true;
};

// Throws UsageError for options that do not go together.
void check_options(const SearchOptions& options);

struct CircuitPart {
  std::string name;  // "L3H7", "L0H1 -> L1H0 k", "L3H7 5 <- 2"
  Estimate drop;     // of the metric without it
  Json place;        // layer and head, the ends of an edge, or the cell
};

struct FoundCircuit {
  std::vector<CircuitPart> parts;  // in the order in which they are kept
  Curve curve;
  double part_count = 0;             // a mean over the prompts for attention edges
  std::vector<std::string> members;  // of the circuit at the level; none for attention edges
  std::vector<HeadId> heads;         // those of the members that are heads, in the same order
  CircuitGraph graph;                // the members as a drawing, of edges
  std::optional<CellScores> cells;   // of attention edges
  const PublishedCircuit* published = nullptr;
  std::optional<Agreement> agreement;  // with the published circuit
};

// `label` is the model's in messages; `section` keeps the state of the work, or is null.
FoundCircuit search_circuit(const Model& model, const LoadedTask& task,
                            const SearchOptions& options, const std::string& label,
                            SweepSection* section, const Session& session);

// Of everything that the numbers of a search depend on.
std::uint64_t search_key(const Model& model, const LoadedTask& task, const SearchOptions& options);

}  // namespace filigree::cli
