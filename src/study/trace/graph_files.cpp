#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/atomic_file.h"
#include "base/output_folder.h"
#include "filigree/feature_study.h"
#include "filigree/names.h"
#include "filigree/trace_study.h"
#include "io/npz.h"

namespace filigree::study {
namespace {

std::string dot_text(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : printable(text)) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

template <typename T>
void add_array(NpzWriter& npz, const std::string& name, TensorKind kind,
               const std::vector<T>& values, std::vector<std::int64_t> shape) {
  npz.add(name, kind, std::move(shape), std::as_bytes(std::span(values)));
}

void add_tensor(NpzWriter& npz, const std::string& name, const Tensor& tensor) {
  std::vector<std::int64_t> shape;
  for (int axis = 0; axis < tensor.shape().rank(); ++axis) shape.push_back(tensor.size(axis));
  npz.add(name, TensorKind::kF32, shape, std::as_bytes(tensor.values()));
}

std::filesystem::path with_label(const std::filesystem::path& file, const std::string& label) {
  return file.parent_path() /
         fmt::format("{}-{}{}", file.stem().string(), slug_of(label), file.extension().string());
}

// Of several graphs in one folder each finds its own features.
std::string features_folder(const TracedModel& traced) {
  return "features/" + slug_of(traced.label + "-" + transcoder_name(traced.features));
}

// Before the graph that names them: a graph that is there has its features.
void write_features(const Json& graph, const TracedModel& traced, const FeaturesOfModel& through,
                    const std::filesystem::path& folder, const Context& context) {
  const GraphFeatures chosen = features_of_graph(graph);
  // The folder that the graph's file was named in; below it no link is followed.
  const OutputFolder beside(folder.parent_path().parent_path(), OutputFolder::Users::kMany);
  const FeatureExport written =
      export_chosen_features({.features = traced.features,
                              .index = through.index,
                              .folder = folder,
                              .layout = FeatureLayout::kFiles},
                             chosen.features, *through.model, *through.features, context);
  context.say(fmt::format("{}: {} features, {}", printable(folder.string()), written.features,
                          human_bytes(written.bytes)));
  if (chosen.left_out > 0)
    context.say(fmt::format("{}: the {} least influential features are left out",
                            printable(folder.string()), chosen.left_out));
}

// The graph, and what its features are where there is an index. Returns the files and the graph.
std::vector<std::string> write_json(const TraceResult& result, const TracedModel& traced,
                                    const FeaturesOfModel& through,
                                    const std::filesystem::path& path, const Context& context,
                                    std::vector<Json>& graphs) {
  std::vector<std::string> files;
  GraphFileOptions options;
  options.slug = path.stem().string();
  const bool indexed = !through.index.empty();
  if (indexed) options.scan = "./" + features_folder(traced);
  GraphFile graph = graph_json(traced, result.request.prompt, result.request, options);
  if (indexed) {
    const std::filesystem::path folder = path.parent_path() / features_folder(traced);
    write_features(graph.graph, traced, through, folder, context);
    files.push_back(folder.string());
  } else {
    context.say(fmt::format(
        "{}: without files of its features: there is no index (features index makes one)",
        printable(path.string())));
  }
  if (graph.links_left_out > 0)
    context.say(fmt::format("{}: the {} least influential edges are left out",
                            printable(path.string()), graph.links_left_out));
  const std::string text =
      graph.graph.dump(-1, ' ', false, nlohmann::detail::error_handler_t::replace);
  write_file_atomically(path, text);
  context.say(fmt::format("{}: {} nodes, {} links, {}", printable(path.string()),
                          graph.graph.at("nodes").size(), graph.graph.at("links").size(),
                          human_bytes(text.size())));
  graphs.push_back(std::move(graph.graph));
  files.insert(files.begin(), path.string());
  return files;
}

}  // namespace

bool is_graph_file(const std::filesystem::path& file) {
  return file.extension() == ".json" || file.extension() == ".dot" || file.extension() == ".npz";
}

std::string graph_dot(const TracedModel& traced) {
  const PrunedGraph& pruned = traced.pruned;
  double strongest = 1e-30;
  for (const EffectEdge& edge : pruned.edges) strongest = std::max(strongest, edge.influence);
  std::string dot = "digraph trace {\n  rankdir=BT;\n  node [shape=box, fontname=\"Noto Sans\"];\n";
  for (const std::int64_t i : pruned.nodes()) {
    const GraphNode& node = traced.graph.nodes[static_cast<std::size_t>(i)];
    dot += fmt::format("  n{} [label={}{}];\n", i,
                       dot_text(fmt::format("{} @{} {}", node_name(traced, i), node.position,
                                            traced.token_at(node.position))),
                       node.kind == NodeKind::kError ? ", style=dashed" : "");
  }
  for (std::size_t e = 0; e < pruned.edges.size(); ++e) {
    const EffectEdge& edge = pruned.edges[e];
    std::string through;
    if (traced.loadings[e].heads.defined() &&
        traced.graph.nodes[static_cast<std::size_t>(edge.source)].position !=
            traced.graph.nodes[static_cast<std::size_t>(edge.target)].position) {
      const std::vector<RankedHead> heads = ranked_heads(traced.loadings[e].heads);
      if (!heads.empty())
        through = fmt::format(", label=\"L{}H{}\"", heads[0].layer, heads[0].head);
    }
    dot += fmt::format("  n{} -> n{} [penwidth={:.2f}, style={}, tooltip=\"{:.4g}\"{}];\n",
                       edge.source, edge.target, 0.3 + 3.7 * std::sqrt(edge.influence / strongest),
                       edge.effect < 0.0 ? "dashed" : "solid", edge.effect, through);
  }
  return dot + "}\n";
}

void write_graph_npz(const TracedModel& traced, const std::filesystem::path& file) {
  const AttributionGraph& graph = traced.graph;
  const auto count = static_cast<std::int64_t>(graph.nodes.size());
  std::vector<std::int32_t> kind, layer, position, feature, kept;
  std::vector<float> activation;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    kind.push_back(static_cast<std::int32_t>(graph.nodes[i].kind));
    layer.push_back(static_cast<std::int32_t>(graph.nodes[i].layer));
    position.push_back(static_cast<std::int32_t>(graph.nodes[i].position));
    feature.push_back(static_cast<std::int32_t>(graph.nodes[i].feature));
    kept.push_back(traced.pruned.kept[i] ? 1 : 0);
    activation.push_back(static_cast<float>(graph.nodes[i].activation));
  }
  NpzWriter npz(file);
  add_tensor(npz, "effects", graph.effects);
  add_array(npz, "value", TensorKind::kF64, graph.value, {graph.rows()});
  add_array(npz, "bias", TensorKind::kF64, graph.bias, {graph.rows()});
  add_array(npz, "left_out", TensorKind::kF64, graph.left_out, {graph.rows()});
  add_array(npz, "kind", TensorKind::kI32, kind, {count});
  add_array(npz, "layer", TensorKind::kI32, layer, {count});
  add_array(npz, "position", TensorKind::kI32, position, {count});
  add_array(npz, "feature", TensorKind::kI32, feature, {count});
  add_array(npz, "kept", TensorKind::kI32, kept, {count});
  add_array(npz, "activation", TensorKind::kF32, activation, {count});
  add_array(npz, "influence", TensorKind::kF64, traced.pruned.influence, {count});
  std::vector<std::int32_t> edges;
  std::vector<float> loadings;
  for (std::size_t e = 0; e < traced.pruned.edges.size(); ++e) {
    const Tensor& heads = traced.loadings[e].heads;
    if (!heads.defined()) continue;
    edges.push_back(static_cast<std::int32_t>(traced.pruned.edges[e].target));
    edges.push_back(static_cast<std::int32_t>(traced.pruned.edges[e].source));
    loadings.insert(loadings.end(), heads.f32(), heads.f32() + heads.elements());
  }
  const auto loaded = static_cast<std::int64_t>(edges.size() / 2);
  add_array(npz, "edges", TensorKind::kI32, edges, {loaded, 2});
  add_array(npz, "edge_loadings", TensorKind::kF32, loadings,
            {loaded, traced.frozen.depth(), traced.frozen.heads});
  if (traced.pair) {
    add_tensor(npz, "pair_loadings", traced.pair->loading.heads);
    const std::vector<std::int32_t> pair = {static_cast<std::int32_t>(traced.pair->loading.to),
                                            static_cast<std::int32_t>(traced.pair->loading.from)};
    add_array(npz, "pair", TensorKind::kI32, pair, {2});
  }
  Json tokens = Json::array();
  for (std::int64_t p = 0; p < traced.frozen.positions; ++p) tokens.push_back(traced.token_at(p));
  const Json meta = {{"model", traced.model},
                     {"features", traced.features},
                     {"tokens", tokens},
                     {"kinds", names_of<NodeKind>()},
                     {"feature_nodes", graph.features},
                     {"targets", graph.targets},
                     {"replacement_score", traced.scores.replacement},
                     {"completeness_score", traced.scores.completeness}};
  npz.add_text("meta.json", meta.dump());
  npz.commit();
}

GraphFeatures features_of_graph(const Json& graph, std::int64_t most) {
  std::vector<std::pair<double, FeatureId>> named;
  const auto add = [&](const Json& node, double rank) {
    if (node.at("feature_type") != "cross layer transcoder") return;
    const LayerFeature pair = unpaired(node.at("feature"));
    named.emplace_back(rank, FeatureId{pair.layer, pair.feature});
  };
  // Influence is the share that is reached with a node: it rises from the most influential on. What
  // only scores of attention name comes last.
  for (const Json& node : graph.at("nodes"))
    add(node, node.at("influence").is_number() ? node.at("influence").get<double>() : 0.0);
  for (const Json& node : graph.at("qk_only_nodes")) add(node, 2.0);
  std::stable_sort(named.begin(), named.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  GraphFeatures chosen;
  std::set<FeatureId> seen;  // one feature may be a node at several positions
  for (const auto& [rank, feature] : named) {
    if (!seen.insert(feature).second) continue;
    if (std::ssize(chosen.features) < most)
      chosen.features.push_back(feature);
    else
      ++chosen.left_out;
  }
  return chosen;
}

std::vector<std::string> write_graph_files(const TraceResult& result,
                                           const std::filesystem::path& file,
                                           const Context& context) {
  std::vector<std::string> files;
  std::vector<Json> graphs;
  for (std::size_t m = 0; m < result.models.size(); ++m) {
    const TracedModel& traced = result.models[m];
    const std::filesystem::path path =
        result.models.size() == 1 ? file : with_label(file, traced.label);
    if (file.extension() == ".dot") {
      write_file_atomically(path, graph_dot(traced));
      files.push_back(path.string());
    } else if (file.extension() == ".npz") {
      write_graph_npz(traced, path);
      files.push_back(path.string());
    } else {
      const std::vector<std::string> written =
          write_json(result, traced, result.through[m], path, context, graphs);
      files.insert(files.end(), written.begin(), written.end());
    }
  }
  if (!graphs.empty()) {
    const std::filesystem::path path = file.parent_path() / "graph-metadata.json";
    write_file_atomically(path, graph_metadata(graphs).dump(2) + "\n");
    files.push_back(path.string());
  }
  return files;
}

void check_files(const TraceFiles& files) {
  for (const std::string& file : files.files) {
    if (is_graph_file(file)) continue;
    if (!is_figure_file(file))
      throw RequestError(fmt::format(
          "--out: '{}' must end in .json, .dot, .npz, .svg, .pdf or .png", printable(file)));
    check_figure_file(file);
  }
}

std::vector<std::string> write_files(const TraceResult& result, const TraceFiles& files,
                                     const Context& context) {
  std::vector<std::string> written;
  for (const std::string& file : files.files) {
    if (is_graph_file(file)) {
      const std::vector<std::string> more = write_graph_files(result, file, context);
      written.insert(written.end(), more.begin(), more.end());
    } else {
      save_trace_figure(result, files.drawing, file, files.style);
      written.push_back(file);
    }
  }
  return written;
}

}  // namespace filigree::study
