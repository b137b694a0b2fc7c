// Attribution graphs of one prompt.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "filigree/features.h"
#include "filigree/model.h"
#include "filigree/names.h"

namespace filigree {

// -------------------------------------------------------------------------------------------------
// A model on one prompt with everything frozen that is not linear: attention weights after the
// gates and the denominators of norms. What is left carries a change of the residual stream upwards
// by matrix products alone: centring and gain of the norms are folded into the matrices that read
// behind them or write before them, their denominators into the patterns. MLPs are no part of it:
// what features write is added to the stream behind any norm that follows the MLP.
//
// Soft caps: those of scores are frozen with the attention weights, logits are those before theirs.
// Clipped values are linear as long as none is clipped, and a prompt on which one is, is refused.
//
// The stream is read at stages: stage 2 l is what layer l's attention reads, 2 l + 1 what its MLP
// reads, and the last, 2 L, what the final norm reads.

// Vectors that are written into the stream at one stage, ordered by position. Source `bias` (the
// number of sources) stands for all that is there whatever the prompt.
struct StreamWrites {
  Tensor rows;                       // [writes, width]
  std::vector<std::int32_t> source;  // of each
  std::vector<std::int64_t> begin;   // [positions + 1]
};

// A linear function of the stream at one stage, of one position or several: constant + sum over
// parts of vector . stream[position].
struct StreamReading {
  struct Part {
    std::int64_t position = 0;
    std::vector<float> vector;  // [width]
  };
  std::int64_t stage = 0;
  std::vector<Part> parts;
  double constant = 0.0;
};

struct FrozenLayer {
  Tensor value;   // [key heads, D, width]: of the stream divided by its norm's denominator
  Tensor output;  // [heads, D, width], with the gain of the norm behind the attention
  // [heads, positions, positions]: weight / denominators of the key's norm and of the one behind
  Tensor pattern;
  Tensor skip;  // [width, width] or undefined, of the stream times skip_scale: y[o] = skip[o] . x
  std::vector<float> skip_scale;  // [positions]
  Tensor attention_bias;          // [positions, width]: b_O and what b_V becomes
  Tensor weights;                 // [heads, positions, positions], as the run had
  Tensor query, key;              // [positions, heads or key heads, D], turned
  // As projected and clipped, where a model clips; and 1 / denominator of the norm of each head's
  // query or key, [positions, heads or key heads], where there is one.
  Tensor projected_query, projected_key, query_scale, key_scale;
  std::vector<float> attention_scale, mlp_scale;  // 1 / denominator, [positions]
  Tensor mlp_input, mlp_output;                   // [positions, width], of features' hooks
};

struct FrozenModel {
  std::int64_t positions = 0, width = 0, heads = 0, key_heads = 0, head_width = 0;
  bool parallel = false;                 // MLPs read what the attention reads
  DeviceKind device = DeviceKind::kCpu;  // of sweeps; what is kept here lies on the CPU
  std::vector<std::int32_t> ids;
  std::vector<FrozenLayer> layers;
  std::vector<float> final_scale;  // 1 / denominator, [positions]
  Tensor token_embedding;          // [positions, width]
  Tensor position_embedding;       // [positions, width] or undefined
  Tensor logits;                   // [vocabulary], of the last position, before a soft cap
  float logit_soft_cap = 0.0f, score_soft_cap = 0.0f;  // 0: none
  ModelWeights weights;                                // of the model, which must live as long

  std::int64_t depth() const { return static_cast<std::int64_t>(layers.size()); }
  const FrozenLayer& layer(std::int64_t l) const { return layers[static_cast<std::size_t>(l)]; }

  // Readings behind norms. Vectors have the stream's width.
  StreamReading read_attention(std::int64_t layer, std::int64_t position,
                               std::span<const double> vector) const;
  StreamReading read_mlp(std::int64_t layer, std::int64_t position,
                         std::span<const double> vector) const;
  StreamReading read_final(std::int64_t position, std::span<const double> vector) const;

  // The same weights with one position only, which attends to nothing but itself.
  FrozenModel alone(std::int64_t position) const;
};

// Runs the model on ids and keeps what is frozen. `mlp_input` and `mlp_output` are taps behind
// "blocks.L.". Throws Error for a model with adapters, for an empty prompt, and where a value of an
// attention layer is clipped.
FrozenModel freeze_model(const Model& model, std::span<const std::int32_t> ids,
                         const std::string& mlp_input, const std::string& mlp_output);

// The same as f32 on the CPU.
LinearWeight on_host(const LinearWeight& w);
// Row `output` of a linear layer as numbers.
std::vector<double> output_row(const LinearWeight& w, std::int64_t output);
double output_bias(const LinearWeight& w, std::int64_t output);

// -------------------------------------------------------------------------------------------------
// The nodes that an attribution graph can have and what each writes into the residual stream:
// active features, what the transcoder misses of each MLP (errors), and embeddings.

enum class NodeKind { kFeature, kError, kEmbedding, kTarget };
template <>
inline constexpr auto kNames<NodeKind> =
    std::to_array<Named<NodeKind>>({{NodeKind::kFeature, "feature"},
                                    {NodeKind::kError, "error"},
                                    {NodeKind::kEmbedding, "embedding"},
                                    {NodeKind::kTarget, "target"}});

struct GraphNode {
  NodeKind kind = NodeKind::kFeature;
  std::int64_t layer = -1;  // of embeddings -1, of logits the number of layers
  std::int64_t position = 0;
  std::int64_t feature = -1;  // or the token of an embedding or logit; -1 if there is none
  double activation = 0.0;    // of features

  bool operator==(const GraphNode&) const = default;
};

struct SourceOptions {
  // Features and errors of the first position are no nodes; its MLPs write what they wrote.
  // Position 0 is where attention that is not needed goes, with a stream like no other.
  bool without_first_position = false;
  bool positions_in_embeddings = true;  // else they are among the biases
};

struct GraphSources {
  std::vector<GraphNode>
      nodes;  // features by (layer, position, index), errors by layer, embeddings
  std::int64_t features = 0, errors = 0, embeddings = 0;
  std::vector<std::int64_t> reach;      // of the features of each layer
  std::vector<StreamWrites> mlp;        // of each layer, behind its MLP
  std::vector<StreamWrites> attention;  // of each layer, behind its attention: biases
  StreamWrites embedding;
  // Of each feature, as a target: what it reads of the stream, and its value in the run.
  std::vector<StreamReading> readings;
  std::vector<double> values;

  std::int64_t count() const { return static_cast<std::int64_t>(nodes.size()); }
  std::int32_t bias() const { return static_cast<std::int32_t>(nodes.size()); }
};

// Fills the frozen model's skips too. Throws Error when the features are those of a model of
// another shape or hooks are not known.
GraphSources graph_sources(FrozenModel& frozen, const FeatureDictionary& features,
                           const SourceOptions& options = {});

// What some feature reads, active or not, and the value it has before its activation function.
struct FeatureReading {
  StreamReading reading;
  double value = 0.0;
};
FeatureReading feature_reading(const FrozenModel& frozen, const FeatureDictionary& features,
                               std::int64_t layer, std::int64_t position, std::int32_t feature);

// -------------------------------------------------------------------------------------------------
// The attribution graph of a prompt: direct effects between active features, errors, embeddings and
// what is to be explained, in the model with attention weights and norms frozen.
//
// effect[t][s] is how much of target t's value (a feature before its activation function, a logit
// less the mean logit) source s brings by all paths through the residual stream and frozen heads
// that pass no other feature. A row's effects, what is left out and the biases sum up to the value.

// What is to be explained.
struct GraphTarget {
  GraphNode node;  // kTarget
  StreamReading reading;
  double value = 0.0;
  double weight = 1.0;         // how much its explanation matters: a logit's probability
  double probability = 0.0;    // of a logit, in the run
  std::int64_t against = -1;   // of a difference of logits: the other token
  std::int64_t of_layer = -1;  // of a feature: its layer
};

// The fewest likeliest next tokens with at least this probability together.
std::vector<GraphTarget> likeliest_logits(const FrozenModel& frozen, double probability = 0.95,
                                          std::int64_t most = 10);
GraphTarget logit_target(const FrozenModel& frozen, std::int64_t token);
GraphTarget logit_difference(const FrozenModel& frozen, std::int64_t token, std::int64_t against);
GraphTarget feature_target(const FrozenModel& frozen, const FeatureDictionary& features,
                           std::int64_t layer, std::int64_t position, std::int32_t feature);

struct GraphOptions {
  std::int64_t max_features = 7500;  // features that become nodes: the most influential ones
  std::int64_t batch = 256;          // targets of a sweep, fewer where the prompt is long
  std::int64_t rerank = 4;           // batches after which influence is computed again
};

struct AttributionGraph {
  std::vector<GraphNode> nodes;  // features, errors, embeddings, targets
  std::int64_t features = 0, errors = 0, embeddings = 0, targets = 0;
  std::vector<std::int32_t> source;  // of each node but the targets: which of GraphSources
  Tensor effects;                    // [features + targets, features + errors + embeddings]
  // Of each row.
  std::vector<double> value, bias;
  std::vector<double> left_out;  // from active features that are no nodes
  std::vector<double> weight;    // of each target
  std::int64_t active_features = 0;

  std::int64_t rows() const { return features + targets; }
  std::int64_t sources() const { return features + errors + embeddings; }
  std::int64_t first_error() const { return features; }
  std::int64_t first_embedding() const { return features + errors; }
  std::int64_t first_target() const { return sources(); }
  // The node whose effects a row has.
  std::int64_t node_of_row(std::int64_t row) const {
    return row < features ? row : row + errors + embeddings;
  }
  // -1: errors and embeddings have none.
  std::int64_t row_of_node(std::int64_t node) const {
    if (node < features) return node;
    return node < sources() ? -1 : node - errors - embeddings;
  }
  const float* row(std::int64_t r) const { return effects.f32() + r * sources(); }
};

AttributionGraph attribution_graph(const FrozenModel& frozen, const GraphSources& sources,
                                   const std::vector<GraphTarget>& targets,
                                   const GraphOptions& options = {});

// -------------------------------------------------------------------------------------------------
// Which nodes and edges of an attribution graph matter, as circuit-tracer defines it: a row's
// magnitudes divided by their sum say where a target's value comes from, and a node's influence is
// the sum over all paths to the targets, these weighted.

inline constexpr double kSmallestRowSum = 1e-10;

// Of each node; the targets have none.
std::vector<double> node_influence(const AttributionGraph& graph);

struct GraphScores {
  double replacement = 0.0;   // influence of embeddings, against that of embeddings and errors
  double completeness = 0.0;  // share of nodes' inputs that are not errors, by influence
};
GraphScores graph_scores(const AttributionGraph& graph);

struct PruneOptions {
  double node_share = 0.8;   // of all influence that kept nodes have
  double edge_share = 0.98;  // of the influence along edges between them
};

struct EffectEdge {
  std::int64_t target = 0, source = 0;  // nodes
  double effect = 0.0;
  double influence = 0.0;  // of the target's and its own share of the target's inputs
};

// All edges between kept nodes (null: all nodes) with what they would carry if there were no
// others.
std::vector<EffectEdge> influential_edges(const AttributionGraph& graph,
                                          const std::vector<bool>* kept = nullptr);

struct PrunedGraph {
  std::vector<bool> kept;          // of each node
  std::vector<double> influence;   // of each node, unpruned
  std::vector<double> cumulative;  // of each node: share of influence up to its rank
  std::vector<EffectEdge> edges;   // by target, then source
  GraphScores scores;              // of the pruned graph, what was removed counted as errors
  std::int64_t count() const;      // nodes kept
  std::vector<std::int64_t> nodes() const;
};

PrunedGraph prune_graph(const AttributionGraph& graph, const PruneOptions& options = {});

// -------------------------------------------------------------------------------------------------
// Through which heads effects pass. Attention layer by attention layer, an effect of a source on a
// target splits exactly into what each head carries from key j to query i at that layer, by all
// paths before and after it, what passes beside the layer's heads, and what the source writes only
// behind them (features of cross-layer transcoders write to many layers).

// A source's effect on a reading.
struct SourceReading {
  const StreamReading* reading = nullptr;
  std::int32_t source = 0;
};

struct CellLoading {
  std::int64_t layer = 0, head = 0, query = 0, key = 0;
  double loading = 0.0;
};

struct EdgeLoading {
  Tensor heads;  // [layers, heads]: sums over cells
  // Of each layer. heads + beside + behind is the effect, up to the target's layer; above it
  // nothing passes.
  std::vector<double> beside, behind;
  std::vector<CellLoading> cells;  // the strongest, falling
  Tensor maps;                     // [layers, heads, positions, positions], if asked for
};

struct LoadingOptions {
  std::int64_t cells = 20;
  bool maps = false;
};

std::vector<EdgeLoading> head_loadings(const FrozenModel& frozen, const GraphSources& sources,
                                       const std::vector<SourceReading>& pairs,
                                       const LoadingOptions& options = {});

// The way from position j to position i: what heads carry over cell (i, j) when nothing else moves
// between positions. Of each edge from a source at j to a target at i, with the sign of the whole
// effect, and summed up.
struct PairLoading {
  std::int64_t from = 0, to = 0;
  Tensor heads;          // [layers, heads]
  double single = 0.0;   // the sum of `heads`: paths of one hop from j to i
  double several = 0.0;  // paths over third positions
  std::int64_t edges = 0;
};
PairLoading pair_loading(const FrozenModel& frozen, const GraphSources& sources,
                         const std::vector<SourceReading>& pairs, std::span<const double> effects,
                         std::int64_t from, std::int64_t to);

struct RankedHead {
  std::int64_t layer = 0, head = 0;
  double loading = 0.0;
};
// By magnitude, falling; those of no loading are left out.
std::vector<RankedHead> ranked_heads(const Tensor& heads);
// The fewest that make up this share of all magnitudes.
std::int64_t fewest_for_share(std::span<const RankedHead> ranked, double share = 0.8);

// -------------------------------------------------------------------------------------------------
// Why a head looked where it looked: the score of a cell, and with it the logit of its gate, split
// over the sources that made its query and its key. Sources are carried to the head's input through
// frozen attention and norms, those on queries and keys too, so that the terms sum up to the score
// exactly. A score with a soft cap is the one before it. Elements of queries and keys that were
// clipped are constants.

struct QkCell {
  std::int64_t layer = 0, head = 0, query = 0, key = 0;
};

// The score as a product of what each source brings to query and key; rows are sources, the last
// one the biases: score of (u, v) is queries[u] . keys[v].
struct QkTerms {
  Tensor queries, keys;  // [sources + 1, D]; the scale of scores is in the queries
  double score = 0.0;    // of the run, before a soft cap
  double term(std::int64_t u, std::int64_t v) const;
};
QkTerms qk_terms(const FrozenModel& frozen, const GraphSources& sources, const QkCell& cell);

// What each source brings through the query, the key being what it is, and through the key. Each
// of both sums up to the score.
struct QkMarginals {
  double score = 0.0;
  // score less the mean score of the row, weighted as the softmax weighs: what decides a softmax
  // without gates, since what all keys share cancels.
  double relative_score = 0.0;
  std::vector<float> query, key;                    // [sources + 1]
  std::vector<float> relative_query, relative_key;  // likewise, of the relative score
};
std::vector<QkMarginals> qk_marginals(const FrozenModel& frozen, const GraphSources& sources,
                                      const std::vector<QkCell>& cells);

// Before a soft cap, and as softmax and gate read it.
double cell_score(const FrozenModel& frozen, const QkCell& cell);
double capped_score(const FrozenModel& frozen, double score);

// The fewest sources that make up a share of all marginals' magnitudes, gathered by the token they
// stand at, with the layers that they span.
struct Modulation {
  std::int64_t position = 0;
  std::int64_t first_layer = 0, last_layer = 0;  // of embeddings 0
  double share = 0.0;
  std::int64_t sources = 0;
};
// `weights` are magnitudes, one a source. Tokens by share, falling.
std::vector<Modulation> modulated_by(const GraphSources& sources,
                                     const std::vector<double>& weights, double share = 0.8);

// -------------------------------------------------------------------------------------------------
// A model's run with features or heads changed, to hold what a graph says against what happens.

// What of the unchanged run stays.
enum class RunMode {
  kConstrained,  // attention, norms' denominators and MLPs: only what is written directly changes
  kFrozen,       // attention weights: MLPs and norms answer
  kFree,         // nothing
};
template <>
inline constexpr auto kNames<RunMode> =
    std::to_array<Named<RunMode>>({{RunMode::kConstrained, "constrained"},
                                   {RunMode::kFrozen, "attention-frozen"},
                                   {RunMode::kFree, "free"}});

// A feature's activation becomes `value`: what it writes changes by the difference.
struct FeatureChange {
  FeatureId feature = {};
  std::int64_t position = 0;
  double activation = 0.0;  // in the unchanged run
  double value = 0.0;
};

// A head's attention weights are multiplied.
struct HeadChange {
  HeadId head = {};
  double factor = 0.0;
};

struct RunChanges {
  std::vector<FeatureChange> features = {};
  std::vector<HeadChange> heads = {};
};

// The logits of the last position, f32 [vocabulary], before a soft cap. Throws Error for features,
// heads and positions that there are not.
class ChangedRuns {
 public:
  ChangedRuns(const Model& model, const FrozenModel& frozen, const FeatureDictionary& features);

  Tensor logits(const RunChanges& changes, RunMode mode) const;
  // A target's value of such logits.
  double value(const GraphTarget& target, const Tensor& logits) const;

 private:
  const Model& model_;
  const FrozenModel& frozen_;
  const FeatureDictionary& features_;
  std::vector<std::pair<std::string, Tensor>> clean_;  // taps that modes hold
};

// What setting each feature node to zero does to a target, by the graph: directly, and through all
// features that it moves, as long as these stay active.
struct PredictedEffects {
  std::vector<double> direct, total;  // of each feature node
};
PredictedEffects predicted_ablations(const AttributionGraph& graph, std::int64_t target);

}  // namespace filigree
