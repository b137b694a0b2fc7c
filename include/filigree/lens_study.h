// One prompt or one head looked at: predictions, lenses, pages of heads, generated text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "filigree/attention_study.h"
#include "filigree/circuit.h"
#include "filigree/circuit_study.h"
#include "filigree/evaluation_study.h"
#include "filigree/features.h"
#include "filigree/interventions.h"
#include "filigree/knobs.h"
#include "filigree/lens.h"
#include "filigree/maps.h"
#include "filigree/model.h"
#include "filigree/names.h"
#include "filigree/study.h"
#include "filigree/study_figures.h"
#include "filigree/tokenizer.h"

namespace filigree::study {

// -------------------------------------------------------------------------------------------------
// What a run says of its text: the next token, how well it knew the prompt, and both beside the run
// that nothing changes. The live page and the report page show it.

struct Prediction {
  std::vector<float> logits = {};     // after the last token
  std::vector<double> surprise = {};  // nats of each token after the first
  double loss() const;                // their mean; not a number for a single token
};

// From the logits [B, T, V] of runs of which number `run` is of `ids`. Throws Error where they are
// not finite.
Prediction prediction_of(const Tensor& logits, const LoadedModel& model,
                         const std::vector<TokenId>& ids, std::size_t run = 0);
// From a run of its own, with `changes` (null: none).
Prediction predict(const LoadedModel& model, const std::vector<TokenId>& ids,
                   AppliedInterventions* changes = nullptr);

// {"next", "loss", "plain_loss", "surprise", "divergence"}: of the `top` likeliest tokens of both
// runs, by the run at hand, their ranks (from 1) and probabilities in each. `plain` is null where
// nothing is changed.
Json to_json(const Prediction& now, const Prediction* plain, const LoadedModel& model,
             std::size_t top);

// -------------------------------------------------------------------------------------------------
// One prompt through a model: any tap read, anything changed that can be, gradients, and what the
// prediction makes of it beside the unchanged run.

struct RunRequest {
  std::string prompt = {};
  bool chat = false;  // the prompt is what a user says to the model (encode_chat)
  // Globs over the model's taps, '*' for any characters; "logits": of every position, in files.
  std::vector<std::string> taps = {};
  Interventions interventions = {};
  std::string features = {};                  // of the transcoder whose features are changed
  std::vector<SteeringChange> steering = {};  // in the changed run, beside the interventions
  std::string gradient_of = {};               // token whose last logit is differentiated; "": none
  std::vector<std::string> tokens = {};       // listed whatever their rank
  std::size_t top = 10;                       // likeliest next tokens of each run that are listed
};

// One token after the prompt.
struct NextToken {
  TokenId id = 0;
  std::int64_t rank = 0;  // 0: the likeliest
  double logit = 0, probability = 0;
};

// The first-order estimate of what a part does: the sum of its output times the gradient there.
// To set the part to zero takes about so much off the logit.
struct PartGradient {
  Component part = {};
  double value_times_gradient = 0;
};

// A feature that was changed, and what it was before that, by position.
struct SteeredFeature {
  SteeringChange change = {};
  std::vector<float> activations = {};
};

// One of the two runs.
struct RunValues {
  std::vector<NextToken> listed = {};     // in the order of RunResult::listed
  std::vector<NextToken> likeliest = {};  // by position
  Tensor logits = {};                     // [T, V]
  std::vector<Tensor> taps = {};          // without the batch, in the order of RunResult::taps
  std::vector<Tensor> gradients = {};     // likewise, or none
  std::vector<PartGradient> parts = {};   // every head and MLP or expert, or none
};

struct RunResult {
  RunRequest request = {};
  std::string model = {}, label = {};
  std::vector<TokenId> ids = {};
  std::optional<TokenId> gradient_of = {};
  std::vector<std::string> taps = {};
  std::vector<TokenId> listed = {};
  RunValues plain = {};
  std::optional<RunValues> changed = {};  // with interventions
  std::vector<SteeredFeature> steered = {};
  // KL(plain || changed) of the next token in nats, by position; none without interventions.
  std::vector<double> divergence = {};
  ShownTokens shown = {};

  std::vector<std::string> tokens() const;  // of the prompt
};

// What stands for the logits among taps.
inline constexpr const char* kLogitsTap = "logits";

// The taps of a model that fit a glob, in the model's order. Throws Error with the nearest names
// when there is none.
std::vector<std::string> matching_taps(const Model& model, const std::string& glob);

// Throws Error for taps, places and tokens that the model does not have.
RunResult run(const RunRequest& request, Models models, const Context& context);

Json to_json(const RunResult& result);
std::string text_of(const RunResult& result);

// changed_text() with features that are steered.
std::string changed_text(const Interventions& interventions,
                         const std::vector<SteeringChange>& steering);

// Of every head and MLP for the last logit of a token, in a run of these tokens.
std::vector<PartGradient> part_gradients(const LoadedModel& model, const std::vector<TokenId>& ids,
                                         TokenId token);

// "plain.TAP" and, where there are changes, "changed.TAP"; "plain.gradient.TAP" with a gradient;
// "ids", "plain.logits" of the last position, or of all where the request has kLogitsTap, and
// meta.json.
void write_npz(const RunResult& result, const std::filesystem::path& file);

// -------------------------------------------------------------------------------------------------
// The same taps of many prompts, as probes are trained on: tables with a row for every position of
// every prompt, one below the other, in memory that does not grow with their number.

struct ActivationsRequest {
  PromptRequest prompts = {};
  std::vector<std::string> taps = {};  // globs, and "logits"; empty: what follows each prompt alone
  Interventions interventions = {};    // in a second run of each prompt
  // .npz, .safetensors, or a folder that gets files of about `shard_bytes` and activations.json.
  std::filesystem::path out = {};
  std::int64_t shard_bytes = std::int64_t{1} << 29;
  std::size_t top = 3;  // likeliest next tokens of each prompt
};

// What follows a prompt.
struct PromptOutcome {
  std::vector<TokenId> ids = {};
  std::vector<NextToken> next = {}, changed_next = {};
  std::optional<double> divergence = {};  // KL(plain || changed) in nats, with interventions
};

struct ActivationsResult {
  struct Table {
    std::string name;  // "plain.TAP", "changed.TAP", "plain.logits"; "ids", "prompt", "position"
    std::vector<std::int64_t> shape;
  };
  ActivationsRequest request = {};
  std::string model = {}, label = {};
  std::vector<PromptOutcome> prompts = {};
  std::vector<Table> tables = {};
  std::int64_t rows = 0;
  std::uint64_t bytes = 0;
  ShownTokens shown = {};
};

// Throws Error for taps and places that the model does not have, and RequestError for taps that have
// no row for each position.
ActivationsResult run(const ActivationsRequest& request, Models models, const Context& context);

Json to_json(const ActivationsResult& result);
std::string text_of(const ActivationsResult& result);

// Root of the mean square; 0 of nothing. Scores of keys after their query, which are minus
// infinity, do not count.
double root_mean_square(std::span<const float> values);

// -------------------------------------------------------------------------------------------------
// What the heads of a model copy, look for and read of each other, by their weights alone.

struct HeadCircuitsRequest {
  std::string heads = {};              // whose token pairs are listed: "L5H1,L6H*"; "": none
  std::vector<std::string> from = {};  // only pairs that begin with one of these tokens
  // What stands for a token where weights read it, and of kText the text; "": a sample of our own.
  TokenInput input = TokenInput::kFirstMlp;
  std::filesystem::path text = {};
  bool less_random = false;  // take the expected score of random matrices off compositions
  std::size_t top = 10;      // of each list
};

Knobs knobs_of(HeadCircuitsRequest& request);

struct ComposedPair {
  HeadId earlier = {}, later = {};
  double score = 0;
};

struct PairsOfHead {
  HeadId head = {};
  std::vector<TokenPair> ov = {}, qk = {};
};

struct HeadCircuits {
  HeadCircuitsRequest request = {};
  std::string model = {}, label = {};
  std::int64_t layers = 0, heads = 0;          // heads of a layer
  std::string text = {};                       // of kText
  std::optional<HeadsAlive> alive = {};        // nothing: every head was taken
  std::vector<HeadId> listed = {};             // those that ever open, layer by layer
  std::vector<HeadCircuitScores> scores = {};  // of those
  CompositionScores composition = {};          // of every head
  std::vector<PairsOfHead> pairs = {};
  ShownTokens shown = {};  // of the pairs

  // Less the score of random matrices, where that was asked for.
  double composed(Composition kind, const HeadId& earlier, const HeadId& later) const;
  // The request's `top` of all pairs of an earlier and a later head that are listed.
  std::vector<ComposedPair> strongest(Composition kind) const;
};

// Throws RequestError for tokens without heads; for callers that want to fail before long work.
void check_request(const HeadCircuitsRequest& request);

// Of the heads of a gated model only those that open an edge on the text are listed, which the
// model is run on for that; everything else is read off the weights.
HeadCircuits run(const HeadCircuitsRequest& request, Models models, const Context& context);

// Pairs with their tokens as text, which must be among those shown.
Json pairs_json(const std::vector<TokenPair>& pairs, const ShownTokens& shown);

// With kEvery, the scores of all pairs of listed heads too.
enum class Matrices { kEvery, kLeftOut };
Json to_json(const HeadCircuits& found, Matrices matrices);
std::string text_of(const HeadCircuits& found);

// A panel a kind of composition, between listed heads. Throws Error for a model of one layer, which
// has none, and where fewer than two layers have a head that opens.
figure::LabelledMaps figure_of(const HeadCircuits& found);

// -------------------------------------------------------------------------------------------------
// What each head and MLP of models adds directly to a logit or a difference of logits: on a task,
// or on one prompt.

// Either a task, or a prompt with the tokens whose logits count.
struct AttributionRequest {
  TaskSelection task = {};  // without a name: the prompt
  std::string prompt = {};
  bool chat = false;  // the prompt is what a user says to the model (encode_chat)
  std::vector<std::string> answers = {}, wrong = {};  // each one token; of a prompt
  // Of a prompt, in the place of answers: its own token at this position, after those before it.
  std::optional<std::int64_t> at = {};
  Interventions interventions = {};  // of a prompt's run
};

Knobs knobs_of(AttributionRequest& request);

// Throws RequestError for a request that is neither, or both, and Error for a task that there is
// not; for callers that want to fail before long work.
void check_request(const AttributionRequest& request);

// "logit of ' cold' less that of ' warm'".
std::string measured_text(const AttributionRequest& request);

struct AttributedModel {
  std::string model = {}, label = {};
  std::optional<LoadedTask> task = {};
  std::optional<TaskCheck> check = {};  // with a task
  LogitAttribution found = {};
};

struct AttributionResult {
  AttributionRequest request = {};
  std::vector<AttributedModel> models = {};
};

AttributionResult run(const AttributionRequest& request,
                                   Models models, const Context& context);

// Sums over all parts of a kind: "embedding", "positions", "heads", "mlps", "biases", "rest".
struct KindSum {
  std::string_view name;
  Estimate sum;
};
std::vector<KindSum> kind_sums(const LogitAttribution& found);

Json to_json(const AttributionResult& result);
// With the `top` parts of each model that add most.
std::string text_of(const AttributionResult& result, std::size_t top);

// Layers and heads with the MLPs beside them, a panel a model.
figure::LabelledMaps figure_of(const AttributionResult& result);

// -------------------------------------------------------------------------------------------------
// What models would predict after each of their layers, for one prompt, side by side.

struct LensRequest {
  std::string prompt = {};
  bool chat = false;  // the prompt is what a user says to the model (encode_chat)
  std::string token = {};  // ranked everywhere; "": each next token of the prompt
  std::int64_t top = 5;    // likeliest tokens kept; one at least
  bool middle = false;     // also between attention and MLP
  Interventions interventions = {};
};

struct LensOfModel {
  std::string model = {}, label = {};
  std::vector<TokenId> ids = {};
  std::optional<TokenId> token = {};
  LogitLens lens = {};
  ShownTokens shown = {};  // of the prompt, the token and all cells

  std::vector<std::string> tokens() const;  // of the prompt
};

struct LensResult {
  LensRequest request = {};
  std::vector<LensOfModel> models = {};
};

LensResult run(const LensRequest& request, Models models,
                          const Context& context);

Json to_json(const LensResult& result);
std::string text_of(const LensResult& result);

// In each cell the likeliest token, coloured by its probability or that of the token asked about.
figure::LabelledMaps figure_of(const LensResult& result);

// -------------------------------------------------------------------------------------------------
// What one head does: its role with the evidence, its strongest edges, what it copies or
// suppresses, what it looks for and whom it reads, its effect on the logits, what tasks lose
// without it, and its twin in another model.

struct HeadRequest {
  std::string head = {};       // "L6H11"
  PromptRequest prompts = {};  // where attention is looked at; none: the tasks' clean prompts
  // None: every built-in task that fits the tokenizer, those that are drawn from a text if there is
  // one.
  std::vector<std::string> tasks = {};
  std::filesystem::path text = {};  // of tasks that are drawn from one; "": see choose_text()
  // What stands for a token where the head's weights read it; of kText the means are over the
  // prompts that attention is looked at on.
  TokenInput input = TokenInput::kFirstMlp;
  std::int64_t task_prompts = 32;
  Replacement replacement = Replacement::kCorrupt;  // what takes the head's place in tasks
  std::size_t top = 8;                              // of each list
};

// Edges between two tokens, over all prompts.
struct TokenEdge {
  TokenId query = 0, key = 0;
  std::int64_t count = 0;
  double mean = 0;   // weight
  double share = 0;  // of the head's whole attention
  // The strongest of them.
  std::size_t prompt = 0;
  std::int64_t query_position = 0, key_position = 0;
  double weight = 0;
};

// What the head writes for a token that it reads.
struct ReadToken {
  double share = 0;  // of the head's attention
  WrittenForToken written = {};
};

// One side of QK for a token that occurs in the prompts.
struct MatchedToken {
  TokenId token = 0;
  double share = 0;
  std::vector<TokenPair> partners = {};
};

struct ComposedHead {
  HeadId head = {};
  double score = 0;
};

struct LogitEffect {
  TokenId token = 0;
  double effect = 0;
};

// An edge that shows what the head is for: of the task that loses most without it, from the last
// token; else the strongest of all.
struct HeadExample {
  std::string task = {};  // "": of no task
  std::size_t prompt = 0;
  std::int64_t query = 0, key = 0;  // positions
  double weight = 0;
};

// What the head wrote at one position of one prompt, straight to the logits there, with the final
// norm's scale held; less the mean over all tokens, which changes no prediction.
struct DirectEffect {
  std::vector<LogitEffect> raised = {}, lowered = {};
};

struct TaskEffect {
  std::string task = {};
  std::size_t prompts = 0;
  Metric metric = Metric::kLogitDifference;
  TaskCheck check = {};
  Estimate ablated = {};         // the metric without the head
  Estimate drop = {};            // by prompts
  double share = 0;              // of the difference between clean and corrupt
  Estimate direct = {};          // contribution to the logit difference
  std::int64_t direct_rank = 0;  // by magnitude among the heads, 0 the largest
  double open_rows = 0;          // share of the clean prompts' rows in which it attends
  // The strongest edge from a last token, by number of the prompt in the task; none where it is
  // silent there.
  std::optional<HeadExample> last = {};
};

struct HeadFacts {
  std::string model = {}, label = {};
  HeadId head = {};
  HeadRole role = {};
  RoleScores role_scores = {};
  std::int64_t rows = 0, open_rows = 0;
  double mean_mass = 0;  // of a row
  std::vector<TokenEdge> edges = {};
  std::optional<HeadExample> example = {};    // none for a head without an edge
  DirectEffect direct = {};                   // at the example's query
  TokenInput input = TokenInput::kEmbedding;  // what the weights were taken to read
  HeadCircuitScores circuit = {};
  std::vector<ReadToken> reads = {};  // by weights
  // Of its attention, what goes to tokens that its weights have among the five that they raise
  // (lower) most when they read them.
  double copied_share = 0, suppressed_share = 0;
  std::vector<TokenPair> raises = {}, lowers = {};  // of the whole vocabulary
  std::vector<MatchedToken> queries = {}, keys = {};
  std::vector<ComposedHead> reads_heads[kCompositions] = {};  // earlier ones, by composition
  std::vector<ComposedHead> read_by[kCompositions] = {};      // later ones
  double random_composition = 0;
  std::vector<TaskEffect> tasks = {};
  std::vector<float> map = {};  // of the example's prompt, [T, T]
};

struct HeadTwin {
  HeadFacts facts = {};                         // of the head whose maps are most alike
  double correlation = 0;                       // Pearson, over all causal cells of all prompts
  std::optional<double> same_correlation = {};  // of the head of the same place, if there is one
};

struct HeadPage {
  HeadRequest request = {};
  std::vector<Prompt> prompts = {};
  std::vector<std::string> skipped_tasks = {};  // that do not fit the tokenizer
  HeadFacts facts = {};
  std::optional<HeadTwin> twin = {};
  ShownTokens shown = {};

  // The prompt whose map is drawn; 0 for a head without an edge.
  std::size_t example() const { return facts.example ? facts.example->prompt : 0; }
};

// In words, by the sign of the OV score: "anti-copying, lowers what it reads".
std::string copying_text(double score);

// Throws Error for a head that the model does not have, and for a twin with another tokenizer.
// `other` may be null.
HeadPage run(const HeadRequest& request, Models models, const Context& context);

Json to_json(const HeadPage& page);
std::string text_of(const HeadPage& page);

// -------------------------------------------------------------------------------------------------
// A head's page as a figure, and the model that a twin is looked for in.

figure::HeadPage figure_of(const HeadPage& page);

// Of a bundled model "dense-NAME" its "sparse-NAME", and the other way round, where there is one.
std::optional<std::string> counterpart(const std::string& model);

}  // namespace filigree::study
