// One prompt explained through features: the attribution graph of what a model predicts, which
// heads carry what from token to token, and what made those heads look there. Models side by side.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "features/graph/head_loadings.h"
#include "features/graph/influence.h"
#include "features/graph/qk_attribution.h"
#include "study/json.h"
#include "study/tokens.h"

namespace filigree::study {

struct TraceRequest {
  std::string prompt = {};
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
};

// A model and the features to see it through. The dictionary must outlive the result's use.
struct TracedThrough {
  const LoadedModel* model = nullptr;
  const FeatureDictionary* features = nullptr;
  std::string name = {};             // of the features, as the user gave it
  std::filesystem::path index = {};  // of the features; "": there is none
};

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

struct TraceResult {
  TraceRequest request = {};
  std::vector<TracedModel> models = {};
};

// The tokens of the request's prompt.
std::vector<TokenId> trace_tokens(const TraceRequest& request, const LoadedModel& model);

TracedModel trace_model(const TraceRequest& request, const TracedThrough& through,
                        const Context& context);
// The same of given tokens; `targets` makes what is explained of the frozen model.
using TargetsOf = std::function<std::vector<GraphTarget>(const FrozenModel&)>;
TracedModel trace_ids(const TraceRequest& request, const TracedThrough& through,
                      std::vector<TokenId> ids, const TargetsOf& targets, const Context& context);

// Throws RequestError for a target that makes no sense.
TraceResult run_trace(const TraceRequest& request, std::span<const TracedThrough> models,
                      const Context& context);

Json to_json(const TraceResult& result);
Json to_json(const Modulation& modulation, const TracedModel& traced);

// How a node is called: "L3F17", "L3 error", "embedding", "'small'".
std::string node_name(const TracedModel& traced, std::int64_t node);
// Of an edge's target: what it reads.
const StreamReading* reading_of(const TracedModel& traced, std::int64_t node);

}  // namespace filigree::study
