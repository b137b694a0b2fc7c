// The circuit of one model: the parts a task needs, by score, selection and curve, whatever kind of
// part was asked for.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "analyze/circuit/attention_edges.h"
#include "analyze/circuit/circuit.h"
#include "analyze/circuit/published.h"
#include "analyze/circuit/sweep_state.h"
#include "analyze/maps/head_selection.h"
#include "base/circuit_graph.h"
#include "base/names.h"
#include "study/circuits/named_cells.h"
#include "study/circuits/task_selection.h"

namespace filigree::study {

enum class Parts { kHeads, kHeadsAndMlps, kEdges, kAttentionEdges };
enum class Method { kExact, kAttribution, kIntegrated };
enum class Selection { kTop, kGreedy, kGreedyAddition };

// "heads", "heads and MLPs", "edges", "attention edges".
std::string_view plural_of(Parts parts);

// "exact", "attribution", "ig"; of edges "eap" and "eap-ig".
std::string_view method_name(Parts parts, Method method);

// The best of what takes about a minute at GPT-2 small.
Method usual_method(Parts parts);

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

// What a score of this method is called: "drop without it" only where it was measured.
std::string score_title(const SearchOptions& options);

// Throws RequestError for options that do not go together.
void check_options(const SearchOptions& options);

// An edge of the component graph by its ends: "L0H1", "L1H0 k".
struct NamedEdge {
  std::string from, to;
};

struct CircuitPart {
  std::string name;  // "L3H7", "L0H1 -> L1H0 k", "L3H7 END <- IO"
  Estimate score;    // by the search's method: the drop without it, or an estimate of the drop
  std::variant<PatchTarget, NamedEdge, NamedCell> place;
};

// Parts do not carry a task where the model does so much of it with none of them kept: whatever
// circuit is found of them explains what is there without it. A little above one half, which is
// where a model that knows nothing is when clean and corrupt answers are each other's opposite.
inline constexpr double kMostWithoutParts = 0.55;

struct FoundCircuit {
  std::vector<CircuitPart> parts = {};  // in the order in which they are kept
  Curve curve = {};
  double part_count = 0;  // a mean over the prompts for attention edges
  // Whether the effect with no part kept lies below kMostWithoutParts and below the level. Where it
  // does not there are no members.
  bool carried = true;
  std::vector<std::string> members = {};  // of the circuit at the level; none for attention edges
  std::vector<HeadId> heads = {};         // those of the members that are heads, in the same order
  CircuitGraph graph = {};                // the members as a drawing, of edges
  std::optional<CellScores> cells = {};   // of attention edges
  const PublishedCircuit* published = nullptr;
  std::optional<Agreement> agreement = {};  // with the published circuit

  // The circuit of no parts: what the others do alone.
  const CurvePoint& empty_circuit() const { return curve.points.front(); }
};

// `label` is the model's in reports; `section` keeps the state of the work, or is null.
FoundCircuit search_circuit(const Model& model, const LoadedTask& task,
                            const SearchOptions& options, const std::string& label,
                            SweepSection* section, const Context& context);

// Of everything that the numbers of a search depend on.
std::uint64_t search_key(const Model& model, const LoadedTask& task, const SearchOptions& options);

}  // namespace filigree::study

namespace filigree {

template <>
inline constexpr auto kNames<study::Parts> =
    std::to_array<Named<study::Parts>>({{study::Parts::kHeads, "heads"},
                                        {study::Parts::kHeadsAndMlps, "heads+mlps"},
                                        {study::Parts::kEdges, "edges"},
                                        {study::Parts::kAttentionEdges, "attention-edges"}});
// Edge attribution patching is what attribution of edges is called.
template <>
inline constexpr auto kNames<study::Method> =
    std::to_array<Named<study::Method>>({{study::Method::kExact, "exact"},
                                         {study::Method::kAttribution, "attribution"},
                                         {study::Method::kIntegrated, "ig"},
                                         {study::Method::kAttribution, "eap"},
                                         {study::Method::kIntegrated, "eap-ig"}});
template <>
inline constexpr auto kNames<study::Selection> =
    std::to_array<Named<study::Selection>>({{study::Selection::kTop, "top-k"},
                                            {study::Selection::kGreedy, "greedy"},
                                            {study::Selection::kGreedyAddition, "greedy-add"}});

}  // namespace filigree
