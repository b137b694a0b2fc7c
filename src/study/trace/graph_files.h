// Attribution graphs as other programs read them: the JSON of circuit-tracer and Neuronpedia,
// Graphviz, and NumPy's arrays.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/component.h"
#include "study/trace/trace.h"

namespace filigree::study {

struct GraphFileOptions {
  std::string slug = {};           // of letters, digits, '_', '.' and '-'; "": made of the prompt
  std::string scan = {};           // where the viewer finds features; "": their name
  std::int64_t max_links = 50000;  // the most influential ones; 16 MB or so
  std::int64_t qk_nodes = 12;      // nodes whose strongest attention cell is traced
};

// How a (layer, feature) is one number: (l + f) (l + f + 1) / 2 + f, and back.
std::int64_t paired_number(std::int64_t layer, std::int64_t feature);
struct LayerFeature {
  std::int64_t layer = 0, feature = 0;
};
LayerFeature unpaired(std::int64_t number);

struct GraphFile {
  Json graph;
  std::int64_t links_left_out = 0;
};
// The pruned graph. `prompt` is its text.
GraphFile graph_json(const TracedModel& traced, const std::string& prompt,
                     const TraceRequest& request, const GraphFileOptions& options = {});
// Of one graph or more, for graph-metadata.json beside them.
Json graph_metadata(const std::vector<Json>& graphs);

std::string graph_dot(const TracedModel& traced);

// effects, rows and columns as node numbers, kinds, layers, positions, features, influence, kept,
// biases; edges with the loadings of their heads; the pair's.
void write_graph_npz(const TracedModel& traced, const std::filesystem::path& file);

// Letters, digits, '_', '.' and '-' of a text.
std::string slug_of(const std::string& text);

// Writes the pruned graph as FILE.json (and graph-metadata.json beside it), FILE.dot or FILE.npz by
// the ending. Several models have a file each, named by label. Where `through`, what the models
// were traced through, names an index, FILE.json comes with features/MODEL-TRANSCODER/NUMBER.json,
// what each feature of the graph is; of more than kGraphFeatures the most influential. Says what
// was written and how large it is; returns names.
inline constexpr std::int64_t kGraphFeatures = 2000;  // about 30 MB
std::vector<std::string> write_graph_files(const TraceResult& result,
                                           const std::filesystem::path& file,
                                           const Context& context,
                                           std::span<const TracedThrough> through = {});
// The features that a graph's JSON names, the most influential first, `most` of them at most.
struct GraphFeatures {
  std::vector<FeatureId> features = {};
  std::int64_t left_out = 0;
};
GraphFeatures features_of_graph(const Json& graph, std::int64_t most = kGraphFeatures);
// Whether the ending is one of these.
bool is_graph_file(const std::filesystem::path& file);

}  // namespace filigree::study
