// Attention maps, statistics and roles of a model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "filigree/data.h"
#include "filigree/knobs.h"
#include "filigree/maps.h"
#include "filigree/roles.h"
#include "filigree/statistics.h"
#include "filigree/study.h"
#include "filigree/study_figures.h"

namespace filigree::study {

// -------------------------------------------------------------------------------------------------
// The prompts that attention is looked at on: texts, or windows of token shards.

struct TextPrompt {
  std::string text;
  std::string name;  // for messages: "prompt 2", "line 3 of 'prompts.txt'"
};

// "the prompt", or "prompt 1" and so on where there are several.
std::vector<TextPrompt> numbered_prompts(const std::vector<std::string>& texts);
// One a line; the last line may end with a newline or not. Throws Error when there is none.
// `source` is for messages: "'prompts.txt'", "standard input".
std::vector<TextPrompt> prompt_lines(const std::string& text, const std::string& source);
// The same of lines that are JSON objects, {"prompt": "..."} or {"ids": [3, 17, 5]}.
std::vector<TextPrompt> prompts_of_json_lines(const std::string& text, const std::string& source);

inline constexpr std::int64_t kPromptWindows = 16;
inline constexpr std::int64_t kPromptWindowLength = 256;

struct ShardWindows {
  std::string folder;
  DataSplit split = DataSplit::kHeldOut;
  std::int64_t samples = kPromptWindows;  // drawn by the seed
};

struct PromptRequest {
  std::variant<std::vector<TextPrompt>, ShardWindows> source = {};
  // Tokens of a window, and the most of a text, of which the rest is left out. 0: windows of
  // kPromptWindowLength where the context allows it, and whole texts.
  std::int64_t length = 0;
  bool replace_invalid_utf8 = false;  // of texts
  bool chat = false;                  // texts are what a user says to the model (encode_chat)

  bool empty() const;
};

struct PromptSet {
  std::vector<Prompt> prompts;
  std::optional<Tokenizer> tokenizer;  // nothing when neither models nor shards have one
};

// The one tokenizer of models side by side. Throws Error when one has none or another.
const Tokenizer& common_tokenizer(Models models);

// Throws RequestError when there are no prompts, and Error for models whose tokenizers differ,
// prompts that are empty, not UTF-8 or too long for a model, and shards that do not fit the models.
PromptSet read_prompts(const PromptRequest& request, Models models,
                       const Context& context);

// How many there are, and their tokens unless those are too many to read.
Json to_json(const std::vector<Prompt>& prompts);

// -------------------------------------------------------------------------------------------------
// One model looked at on prompts: roles, statistics and head pairs, and whoever else wants to see
// the maps, in as few passes as there can be.

struct AnalysisPlan {
  std::vector<HeadId> heads = {};
  bool roles = false, statistics = false, pairs = false;
  // Maps of one kind for somebody else. `each` sees those of every layer, one prompt after the
  // other, in views that hold what the kind needs; `mean` those over all prompts, which must be of
  // one length. Either may be empty.
  MapKind kind = MapKind::kWeights;
  HeadMapConsumer each = {};
  MeanMapConsumer mean = {};
  // With the model's tokens. On the repeated text of roles only what means the same for any text.
  Interventions interventions = {};
};

struct AnalysedModel {
  std::string model = {};  // as the user named it
  std::string label = {};
  std::int64_t parameters = 0;
  std::vector<HeadId> heads = {};
  // By head; empty unless asked for.
  std::vector<RoleScores> role_scores = {};
  std::vector<HeadRole> roles = {};
  std::optional<AttentionStatistics> statistics = {};
  std::optional<HeadPairs> pairs = {};
};

// Reports prompts under the model's label; throws Stopped between layers.
AnalysedModel analyse_model(const LoadedModel& model, const PromptSet& prompts,
                            const AnalysisPlan& plan, const Context& context);

// Role, confidence, patterns with their evidence, and every score.
Json role_json(const HeadRole& role, const RoleScores& scores);

// What was not asked for is null.
Json to_json(const AnalysedModel& model);

// -------------------------------------------------------------------------------------------------
// What attention analyses found, as the inputs of figures.

// How the grid is laid out.
struct GridLayout {
  std::string title = {};
  std::size_t columns = 0;  // 0: a layer a row where whole layers are shown, else what fits
  double width = 0;         // points; 0: that of a page
};

Knobs knobs_of(GridLayout& layout);

// "L9H1,L3H0": heads in the order given, each once; "" has none. Throws what parse_heads throws.
std::vector<HeadId> heads_in_order(const std::string& text, const ModelConfig& config);

// The number of heads a layer where `heads` are whole layers of them, layer by layer; else 0.
std::size_t columns_of_layers(const std::vector<HeadId>& heads, std::int64_t heads_a_layer);

// A grid of small maps of one kind, with an empty panel for each title. Maps are added to the panels
// as figure::grid_head() makes them, on the grid's scale; title, prompt and metric are the caller's.
figure::AttentionGrid empty_grid(MapKind kind, const std::vector<std::string>& titles);

// Marks the roles of a panel's maps, in the order they were added, and puts the maps into `order`:
// indices, the first one first. Either may be empty: no roles, as they were added.
void arrange_panel(figure::AttentionGrid& grid, std::size_t panel,
                   const std::vector<HeadRole>& roles, const std::vector<std::size_t>& order = {});

// One head of two models and the difference; maps [T, T].
figure::HeadStrip head_strip_of(const HeadId& head, std::span<const AnalysedModel> models,
                                std::vector<float> first, std::vector<float> second,
                                const Prompt& prompt);

// Correlations of all heads: the first model below the diagonal, the second above.
figure::CorrelationMap correlation_map_of(std::span<const AnalysedModel> models);

// Points of chosen heads (slots), a panel a model.
figure::ScatterMatrix scatter_matrix_of(std::span<const AnalysedModel> models,
                                        const std::vector<std::size_t>& slots, std::uint64_t seed);

// The first (0) or second (1) model's mean over the prompts with its bootstrap interval of 95 %,
// which a single prompt does not have: then both its ends are the mean. Of the model as a whole.
figure::Estimate mean_with_interval(const ComparedStatistic& row, std::size_t model);

// The models' statistics side by side with their changes: over all heads and rows, and over living
// heads and the rows that attend.
figure::StatisticsBars statistics_bars_of(std::span<const AnalysedModel> models,
                                          const std::vector<ComparedStatistic>& comparison);

// -------------------------------------------------------------------------------------------------
// The attention maps of a model or two on prompts, and what they show.

struct AttentionRequest {
  PromptRequest prompts = {};
  std::string heads = "*";  // as filigree/maps.h reads it
  bool roles = false, statistics = false, pairs = false;
  // Each by its ending: .npz, .safetensors or .json with the maps, a figure of them, or .csv with
  // the statistics, which are then made.
  std::vector<std::filesystem::path> files = {};
  MapKind kind = MapKind::kWeights;  // of the maps in files
  bool average = false;              // maps of the mean over the prompts, which are of one length
  Interventions interventions = {};  // in the runs of every model
  FigureStyle style = {};
  GridLayout grid = {};  // of figures
};

Knobs knobs_of(AttentionRequest& request);

struct AttentionResult {
  std::vector<Prompt> prompts = {};
  std::vector<HeadId> heads = {};
  std::vector<AnalysedModel> models = {};
  // Of two models with statistics.
  std::optional<std::vector<ComparedStatistic>> comparison = {};
  std::vector<KeptConnections> connections = {};  // of such a comparison
  MapKind kind = MapKind::kWeights;
  Interventions interventions = {};
  std::vector<std::filesystem::path> files = {};  // as they were asked for
};

// Throws RequestError for what does not go together whatever the models are; for callers that want
// to know before they load them.
void check_request(const AttentionRequest& request);

// Of one model or two. Throws Error for heads that one of them does not have, and all that
// read_prompts throws.
AttentionResult run(const AttentionRequest& request, Models models,
                              const Context& context);

Json to_json(const AttentionResult& result);
// Whatever the result has of roles, statistics and pairs, and the files.
std::string text_of(const AttentionResult& result, bool by_head = false);

// One model: every score. Two: their roles side by side. Then how many heads have each role.
std::string role_table(const std::vector<AnalysedModel>& models);
// The model and its layers, and the heads if asked.
std::string statistics_table(const AnalysedModel& model, bool by_head);
// The two models as a whole with intervals and p-values, over all heads and rows and over those
// that attend; what is left of connections, the heads that changed most, the changes of layers and
// heads.
std::string comparison_table(const std::vector<ComparedStatistic>& rows,
                             const std::vector<KeptConnections>& connections,
                             const std::vector<AnalysedModel>& models, bool by_head);
// The pairs of heads that correlate most.
std::string pair_table(const AnalysedModel& model);

}  // namespace filigree::study
