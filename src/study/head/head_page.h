// What one head does: its role with the evidence, its strongest edges, what it copies or
// suppresses, what it looks for and whom it reads, its effect on the logits, what tasks lose
// without it, and its twin in another model.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyze/circuit/patched_runs.h"
#include "analyze/lens/head_circuits.h"
#include "study/attention/model_analysis.h"
#include "study/circuits/task_selection.h"
#include "study/tokens.h"

namespace filigree::study {

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
HeadPage describe_head(const HeadRequest& request, const LoadedModel& model,
                       const LoadedModel* other, const Context& context);

Json to_json(const HeadPage& page);

}  // namespace filigree::study
