// Attribution graphs of prompts and tasks.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "filigree/circuit_study.h"
#include "filigree/knobs.h"
#include "filigree/names.h"
#include "filigree/study.h"
#include "filigree/study_figures.h"
#include "filigree/trace.h"

namespace filigree::study {

// -------------------------------------------------------------------------------------------------
// One prompt explained through features: the attribution graph of what a model predicts, which
// heads carry what from token to token, and what made those heads look there. Models side by side.

// The features that a model is seen through.
struct TraceFeatures {
  std::string folder = {};           // folder, file or name; "": those beside the model
  std::filesystem::path index = {};  // what features index made of them; "": there is none
};

struct TraceRequest {
  // Of each model; empty: those beside them.
  std::vector<TraceFeatures> features = {};
  std::string prompt = {};
  bool chat = false;  // the prompt is what a user says to the model (encode_chat)
  // What is explained: the likeliest next tokens, or one (of a text of several tokens the first),
  // against another, or a feature, "L3F17@5".
  std::string target = {}, against = {}, feature = {};
  bool end_of_text = false;     // put before the prompt
  bool first_position = false;  // features and errors of the first token are nodes too
  std::int64_t max_features = 7500;
  double node_share = 0.8, edge_share = 0.98;  // of influence that the pruned graph keeps
  bool edge_loadings = true;                   // split edges over heads, not only pairs of tokens
  // The pair of tokens whose way is looked at; none: the one that brings most to the last token.
  std::optional<std::int64_t> key = {}, query = {};
  std::int64_t validated = 0;  // features that are ablated, to hold the graph against; 0: none
};

Knobs knobs_of(TraceRequest& request);

// A model and the features that it is seen through, opened. The model must outlive it.
struct FeaturesOfModel {
  const LoadedModel* model = nullptr;
  std::shared_ptr<const FeatureDictionary> features = {};
  std::string name = {};             // of the features, as the user gave it
  std::filesystem::path index = {};  // of the features; "": there is none
};

// Those that the request names. Throws RequestError where they are not one for each model, and
// Error for features that a model does not have and for an index of others.
std::vector<FeaturesOfModel> features_of_models(const std::vector<TraceFeatures>& asked, Models models);

// The way from one token to another.
struct CarriedPair {
  PairLoading loading = {};
  double influence = 0.0;              // of its edges in the pruned graph
  std::vector<RankedHead> heads = {};  // by magnitude
  std::int64_t heads_for_80 = 0;       // the fewest with 80 % of all magnitudes: n80
};

// A head that carries the pair looked at, and why it looks there.
struct CarryingHead {
  QkCell cell = {};
  double loading = 0.0, share = 0.0;  // share: of all heads' magnitudes
  double weight = 0.0;                // of the attention, after the gate
  double score = 0.0, relative_score = 0.0;
  std::optional<double> gate_logit = {};
  std::vector<Modulation> modulated_by = {};
};

struct TracedModel {
  std::string model = {}, label = {}, features = {};
  std::vector<TokenId> ids = {};
  ShownTokens shown = {};
  FrozenModel frozen = {};
  GraphSources sources = {};
  std::vector<GraphTarget> targets = {};
  AttributionGraph graph = {};
  PrunedGraph pruned = {};
  GraphScores scores = {};  // unpruned
  double row_error = 0.0;   // largest | sum of a row - its value |, of the largest value
  std::vector<EdgeLoading> loadings = {};     // of the pruned graph's edges; of the weakest none
  std::vector<CarriedPair> pairs = {};        // of the pruned graph, by influence
  std::optional<CarriedPair> pair = {};       // the one looked at
  std::int64_t heads_for_80 = 0;              // over all pairs
  std::vector<CarryingHead> carrying = {};    // heads_for_80 of the pair
  std::vector<Modulation> modulated_by = {};  // all of them, each by its share
  std::optional<std::string> shortened = {};  // the target's text, of whose tokens the first counts
  double top_probability = 0.0;
  TokenId top_token = 0;

  std::string token_at(std::int64_t position) const;
  bool gated() const { return gate_bias.has_value(); }
  std::optional<std::vector<double>> gate_bias = {};  // [layers * heads]
};

// Whether a graph is right: what ablating its features and heads does to the prediction, against
// what the graph says.

inline constexpr std::size_t kRunModes = 3;

struct AblatedFeature {
  std::int64_t node = 0;
  double influence = 0.0;
  double direct = 0.0, total = 0.0;             // changes of the target that the graph predicts
  std::array<double, kRunModes> measured = {};  // by RunMode
};

struct AblatedHead {
  HeadId head = {};
  double loading = 0.0;   // magnitude, over all pairs of tokens
  double measured = 0.0;  // change of the target, attention otherwise frozen
};

struct TraceValidation {
  std::vector<AblatedFeature> features = {};  // evenly over the ranks by influence
  std::vector<AblatedHead> heads = {};        // those that carry most
  // Rank correlation of influence and of the predicted total with the measured magnitude, by mode.
  std::array<double, kRunModes> influence_correlation = {}, total_correlation = {};
  double head_correlation = 0.0;  // of loading and magnitude
  // All of these features taken away at once: predicted by the direct effects, and measured.
  double group_direct = 0.0;
  std::array<double, kRunModes> group_measured = {};
};

// Of the first target, which must be a logit or a difference of two. Throws RequestError otherwise.
TraceValidation validate_trace(const TracedModel& traced, const FeaturesOfModel& through,
                               std::int64_t features, const Context& context);

Json to_json(const TraceValidation& validation, const TracedModel& traced);

struct TraceResult {
  TraceRequest request = {};
  std::vector<TracedModel> models = {};
  std::vector<TraceValidation> validations = {};  // one a model, where any features were ablated
  // What the models were seen through, for files about their features. The models must outlive it.
  std::vector<FeaturesOfModel> through = {};
};

// The tokens of the request's prompt.
std::vector<TokenId> trace_tokens(const TraceRequest& request, const LoadedModel& model);

TracedModel trace_model(const TraceRequest& request, const FeaturesOfModel& through,
                        const Context& context);
// The same of given tokens; `targets` makes what is explained of the frozen model.
using TargetsOf = std::function<std::vector<GraphTarget>(const FrozenModel&)>;
TracedModel trace_ids(const TraceRequest& request, const FeaturesOfModel& through,
                      std::vector<TokenId> ids, const TargetsOf& targets, const Context& context);

// Throws RequestError for a target that makes no sense.
TraceResult run(const TraceRequest& request, Models models, const Context& context);
// Through features that are open already; those of the request do not count.
TraceResult run(const TraceRequest& request, std::vector<FeaturesOfModel> through,
                const Context& context);

Json to_json(const TraceResult& result);
std::string text_of(const TraceResult& result);
Json to_json(const Modulation& modulation, const TracedModel& traced);

// How a node is called: "L3F17", "L3 error", "embedding", "'small'".
std::string node_name(const TracedModel& traced, std::int64_t node);
// Of an edge's target: what it reads.
const StreamReading* reading_of(const TracedModel& traced, std::int64_t node);

// -------------------------------------------------------------------------------------------------
// Figures of traced prompts.

enum class TraceDrawing {
  kHeads,  // those that carry the pair looked at, and what modulates them
  kGraph,  // the pruned graph
};

// Throws Error where nothing is carried between tokens.
figure::CarriedPairFigure heads_figure(const TraceResult& result);
// Of each model at most `most` nodes, the most influential ones.
figure::FeatureGraphFigure graph_figure(const TraceResult& result, std::size_t most = 150);

void save_trace_figure(const TraceResult& result, TraceDrawing drawing,
                       const std::filesystem::path& file, const FigureStyle& style);

}  // namespace filigree::study

namespace filigree {

template <>
inline constexpr auto kNames<study::TraceDrawing> = std::to_array<Named<study::TraceDrawing>>(
    {{study::TraceDrawing::kHeads, "heads"}, {study::TraceDrawing::kGraph, "graph"}});

}  // namespace filigree

namespace filigree::study {

// -------------------------------------------------------------------------------------------------
// A task's prompts traced one by one, and what they share: how many heads carry what the answer
// needs from token to token, which heads and features return from prompt to prompt, how complete
// the graphs are. Models side by side on the same prompts.

struct TaskTraceRequest {
  TaskSelection task = {};
  TraceRequest trace = {};  // but for prompt and target: the answer against a wrong one
};

// A head over all prompts, by the share of what is carried between the pair looked at.
struct SharedHead {
  HeadId head = {};
  Estimate share = {};
};

// A feature at tokens of one role.
struct SharedFeature {
  FeatureId feature = {};
  std::string role = {};
  double prompts = 0.0;    // share of them whose pruned graph has it
  double influence = 0.0;  // mean over all prompts
};

struct TracedTask {
  std::string model = {}, label = {}, features = {};
  std::int64_t prompts = 0, correct = 0;  // correct: the answer's logit above the wrong one's
  Estimate pair_heads_for_80, heads_for_80, nodes, edges, replacement, completeness, single_share;
  Estimate influence_correlation, predicted_correlation;  // attention frozen; of validated ones
  std::vector<SharedHead> heads = {};                     // strongest first
  std::vector<SharedFeature> shared = {};                 // in the most prompts first
  std::vector<std::pair<std::string, std::int64_t>> pairs = {};  // "S1 to END", how often
  // Heads that reach each share of what the pair carries: mean over prompts.
  std::vector<std::pair<double, double>> curve = {};
};

struct TaskTraceResult {
  TaskTraceRequest request = {};
  std::string task = {};
  std::vector<TracedTask> models = {};
};

TaskTraceResult run(const TaskTraceRequest& request, Models models, const Context& context);

Json to_json(const TaskTraceResult& result);
std::string text_of(const TaskTraceResult& result);

// -------------------------------------------------------------------------------------------------
// Attribution graphs as other programs read them: the JSON of circuit-tracer and Neuronpedia,
// Graphviz, and NumPy's arrays.

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
// the ending. Several models have a file each, named by label. Where a model's features came with
// an index, FILE.json comes with features/MODEL-TRANSCODER/NUMBER.json, what each feature of the
// graph is; of more than kGraphFeatures the most influential. Says what was written and how large
// it is; returns names.
inline constexpr std::int64_t kGraphFeatures = 2000;  // about 30 MB
std::vector<std::string> write_graph_files(const TraceResult& result,
                                           const std::filesystem::path& file,
                                           const Context& context);
// The features that a graph's JSON names, the most influential first, `most` of them at most.
struct GraphFeatures {
  std::vector<FeatureId> features = {};
  std::int64_t left_out = 0;
};
GraphFeatures features_of_graph(const Json& graph, std::int64_t most = kGraphFeatures);
// Whether the ending is one of these.
bool is_graph_file(const std::filesystem::path& file);

// -------------------------------------------------------------------------------------------------
// All files of a traced prompt: graphs and figures, by their endings.

struct TraceFiles {
  std::vector<std::string> files = {};
  TraceDrawing drawing = TraceDrawing::kHeads;  // of figures
  FigureStyle style = {};
};

// Throws RequestError for an ending that no graph and no figure has. Before the work.
void check_files(const TraceFiles& files);
// Returns the names of what was written.
std::vector<std::string> write_files(const TraceResult& result, const TraceFiles& files,
                                     const Context& context);

}  // namespace filigree::study
