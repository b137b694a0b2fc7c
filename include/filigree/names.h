// Names of the parts of a transformer, and of values that have fixed names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "filigree/enum_names.h"
#include "filigree/error.h"

namespace filigree {

// -------------------------------------------------------------------------------------------------
// Small text helpers shared by error messages and the command line.

// Number of insertions, deletions and substitutions between two names.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The `count` candidates nearest to `name`, nearest first; ties keep the candidates' order. Only
// the first 256 bytes of a name count.
std::vector<std::string> nearest_names(std::string_view name,
                                       const std::vector<std::string>& candidates,
                                       std::size_t count);

// "a, b, c", with ", " as separator. Without a template to compile, which is why not fmt::join().
std::string join(std::span<const std::string> parts, std::string_view separator);

// "12.3 MB"; decimal units.
std::string human_bytes(std::uint64_t bytes);

// "0.0583 %" of a share of 0.000583; "100 %" from 99.95 on.
std::string percent(double share);

// "124,439,808".
std::string with_thousands(std::uint64_t value);

// "1 prompt", "1,024 prompts": the plural of a noun that takes an s.
std::string counted(std::uint64_t count, std::string_view noun);

// `text` with control characters (those that turn the direction of writing among them) and invalid
// UTF-8 written as \xNN; only the whole characters
// within its first `limit` bytes, "..." standing for the rest. Safe inside a message about
// untrusted input.
std::string printable(std::string_view text, std::size_t limit = 80);

// All of `text` as it may be sent to a terminal: line breaks and tabs stay, everything else that
// printable() rewrites is rewritten.
std::string terminal_text(std::string_view text);
// The same for JSON, which stays the same document: \u009b stands for what a terminal may obey.
std::string terminal_json(std::string_view text);

// -------------------------------------------------------------------------------------------------
// Names of an enumeration's values (filigree/enum_names.h), with what is said about one that is wrong.

// "a", "a or b", "a, b or c".
std::string any_of_text(const std::vector<std::string>& names);

// Throws Error, "metric 'x' is not known; it is kl or accuracy", `what` being the thing that has
// the name.
template <NamedEnum Enum>
Enum parse_name(std::string_view name, std::string_view what) {
  if (const std::optional<Enum> value = find_name<Enum>(name)) return *value;
  fail("{} '{}' is not known; it is {}", what, printable(name), any_of_text(names_of<Enum>()));
}

// -------------------------------------------------------------------------------------------------
// The parts of a transformer that analyses speak of, and the one way to write them:
//
//   input     the embeddings          L3H7     head 7 of layer 3
//   logits                            L3 MLP   the MLP of layer 3, or all its experts together
//                                     L3E5     expert 5 of layer 3, where the MLP is a mixture
//                                     L3F250   feature 250 of layer 3's transcoder
//
// Tables, JSON, figures, files and the page all take the names from here, so that a part has the
// same name wherever it is met.

struct HeadId {
  std::int64_t layer = 0;
  std::int64_t head = 0;

  friend auto operator<=>(const HeadId&, const HeadId&) = default;
};

struct ExpertId {
  std::int64_t layer = 0;
  std::int64_t expert = 0;

  friend auto operator<=>(const ExpertId&, const ExpertId&) = default;
};

struct FeatureId {
  std::int64_t layer = 0;
  std::int64_t feature = 0;

  friend auto operator<=>(const FeatureId&, const FeatureId&) = default;
};

enum class ComponentKind { kInput, kHead, kMlp, kExpert, kLogits };

struct Component {
  ComponentKind kind = ComponentKind::kInput;
  std::int64_t layer = 0;   // of heads, MLPs and experts
  std::int64_t head = 0;    // of heads
  std::int64_t expert = 0;  // of experts

  friend bool operator==(const Component&, const Component&) = default;
};

std::string layer_name(std::int64_t layer);          // "L3"
std::string head_name(const HeadId& head);           // "L3H7"
std::string mlp_name(std::int64_t layer);            // "L3 MLP"
std::string expert_name(const ExpertId& expert);     // "L3E5"
std::string feature_name(const FeatureId& feature);  // "L3F250"
std::string name_of(const Component& component);

// The component of that very name, if it is one.
std::optional<Component> find_component(std::string_view name);

// The same; throws Error where it is none.
Component parse_component(std::string_view name);

// The feature of that very name, if it is one; the second throws Error where it is none.
std::optional<FeatureId> find_feature(std::string_view name);
FeatureId parse_feature(std::string_view name);

// -------------------------------------------------------------------------------------------------
// A circuit as a graph, in plain data: analyses make it, figures and reports draw it. It stands
// here because those modules share nothing above this one.

// What of a head an edge goes into; nothing else has a choice.
enum class GraphInput { kNone, kQuery, kKey, kValue };

struct GraphEdge {
  std::size_t from = 0, to = 0;  // places in CircuitGraph::nodes
  GraphInput input = GraphInput::kNone;
  double score = 0;
};

struct CircuitGraph {
  std::vector<Component> nodes = {};
  std::vector<GraphEdge> edges = {};
};

// Where a node stands in the order of the computation: edges must go from lower to higher.
std::int64_t depth_of(const Component& node);

// Throws Error, naming the node or edge, where a node comes twice, an edge names a node that is
// not there or runs against the computation, its input does not fit its end, or its score is not
// finite.
void check_graph(const CircuitGraph& graph);

// The `most` edges with the largest absolute scores, in the order they had, and the nodes that they
// touch. A graph of no more edges comes back as it is.
CircuitGraph strongest_edges(const CircuitGraph& graph, std::size_t most);

}  // namespace filigree
