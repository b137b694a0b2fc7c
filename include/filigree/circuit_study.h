// Circuits of a model: searched, drawn, written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "filigree/circuit.h"
#include "filigree/knobs.h"
#include "filigree/lens.h"
#include "filigree/maps.h"
#include "filigree/names.h"
#include "filigree/report.h"
#include "filigree/study.h"
#include "filigree/study_figures.h"
#include "filigree/tasks.h"

namespace filigree::study {

// -------------------------------------------------------------------------------------------------
// The task that a study is about: a built-in one or a file, how its prompts are made, and whether a
// model can do it.

struct TaskSelection {
  std::string name = {};              // of a task, or a JSONL file
  std::string lines = {};             // those of such a file, which `name` then only names
  std::string corruption = {};        // "": the task's first
  std::optional<Metric> metric = {};  // none: the task's own
  DataSplit split = DataSplit::kHeldOut;
  std::int64_t prompts = 64;
  bool first_token = false;  // of answers of several tokens the first counts
  bool end_of_text = false;  // before every prompt
  // Of tasks that are drawn from one; "": the one that choose_text() finds.
  std::filesystem::path text = {};
};

Knobs knobs_of(TaskSelection& selection);

// Fills in the text of a task that is drawn from one and has none: held-out.txt of the first of the
// folders that has it, else of the bundled dense model. Throws RequestError when there is neither.
// Studies of several models call it once, so that all are asked the same.
TaskSelection choose_text(TaskSelection selection,
                          std::span<const std::filesystem::path> model_folders);
TaskSelection choose_text(TaskSelection selection, Models models);

// The built-in task of that name, or null for a file. Throws Error when it is neither.
const TaskDefinition* find_task(const std::string& name);

struct LoadedTask {
  TaskPrompts prompts = {};
  Metric metric = Metric::kLogitDifference;
  std::string description = {};
  std::string text = {};  // the file that prompts are passages of; "": of none
};

// With a configuration, only prompts that the model can take. Throws Error when none fits, and
// RequestError for a corruption of a file, which holds its own, and for a text that the task does
// not need or has not got.
LoadedTask load_task(const TaskSelection& selection, const Tokenizer& tokenizer,
                     const ModelConfig* config, std::uint64_t seed);
// As this model takes them; a text that is not named is its own (choose_text).
LoadedTask load_task(const TaskSelection& selection, const LoadedModel& model,
                     const Context& context);

// What figures and pages call a task: of a file its name without the folder.
std::string task_title(const LoadedTask& task);

// Runs the model on clean and corrupt prompts. With a label, the work is reported under it.
TaskCheck check_ability(const LoadedModel& model, const std::vector<TaskPrompt>& prompts,
                        Metric metric, const Context& context, const std::string& label = {});
// Whether a circuit would mean something: better than chance, and the corruption matters.
bool is_able(const TaskCheck& check);

// One model and one task.
struct CheckedTask {
  std::string model = {};
  LoadedTask task = {};
  TaskCheck check = {};
};
CheckedTask check_model_on_task(const TaskSelection& selection, const LoadedModel& model,
                                const Context& context);

// What became of the prompts that were drawn; the prompts themselves are left out.
Json fit_json(const TaskPrompts& prompts);
// The file that its prompts are passages of, or null.
Json text_json(const LoadedTask& task);
// The task with its prompts, as texts and tokens.
Json to_json(const LoadedTask& task);
Json to_json(const TaskCheck& check);
Json to_json(const CheckedTask& checked);
Json to_json(const Estimate& value);
// Of all built-in tasks.
Json task_list_json();

// "64 of 301 prompts fit; dropped: ...", a line each.
std::string dropped_text(const TaskPrompts& prompts);
// "better than chance: ..." or plainly that it is not.
std::string verdict_text(const TaskCheck& check, const TaskPrompts& prompts);
// "1.234 +- 0.056".
std::string estimate_text(const Estimate& value);

// -------------------------------------------------------------------------------------------------
// Attention edges under names that a reader knows: of one prompt by its tokens, of several by the
// roles that the task gives their positions.

// A head's edge from a query to a key.
struct NamedCell {
  HeadId head = {};
  std::string query = {}, key = {};  // "END", "' John'"

  std::string name() const;  // "L6H7 END <- IO"
  friend auto operator<=>(const NamedCell&, const NamedCell&) = default;
};

struct ScoredCell {
  NamedCell cell = {};
  std::vector<double> drops = {};  // one a prompt: the sum over its cells of that name
};

// Every cell of the scores, in the order of the names. With one prompt each cell has a name of its
// own; with several, cells of one name are the same edge.
std::vector<ScoredCell> named_cells(const CellScores& scores,
                                    const std::vector<TaskPrompt>& prompts);

// -------------------------------------------------------------------------------------------------
// The circuit of one model: the parts a task needs, by score, selection and curve, whatever kind of
// part was asked for.

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

Knobs knobs_of(SearchOptions& options);

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

namespace filigree::study {

// -------------------------------------------------------------------------------------------------
// The circuits of models: what a model can do is checked once, and one search made for each kind of
// part.

struct ModelCircuit {
  std::string model = {}, label = {};
  LoadedTask task = {};
  TaskCheck check = {};
  SearchOptions options = {};
  // Absent when the model is not better than chance or the corruption does nothing.
  std::optional<FoundCircuit> found = {};

  // The smallest circuit at the level: parts without those that lead nowhere. Nothing where the
  // parts do not carry the task.
  std::optional<std::size_t> size() const;
  bool carried() const { return found && found->carried; }
};

// Circuits of one kind of part, one a model.
using CircuitsOfKind = std::vector<ModelCircuit>;

// How many times smaller than the first model's circuit; nothing where either has none.
std::optional<double> size_ratio(const ModelCircuit& first, const ModelCircuit& circuit);

struct CircuitRequest {
  TaskSelection task = {};
  SearchOptions search = {};
  // Keeps what is done, also when the work is stopped, so that the same request goes on there.
  // Empty: nothing is kept.
  std::filesystem::path state = {};
};

// Throws RequestError for options that do not go together and Error for a task that there is not;
// for callers that want to fail before long work.
void check_request(const CircuitRequest& request);

// The same of several methods, of which none may be named twice.
void check_methods(const CircuitRequest& request, const std::vector<Method>& methods);

// One a model. Throws Stopped between steps, having kept what was done.
CircuitsOfKind run(const CircuitRequest& request, Models models,
                             const Context& context);

// The same by several methods, whatever request.search.method says: what find_circuits gives, one
// for each.
std::vector<CircuitsOfKind> find_circuits_by(const std::vector<Method>& methods,
                                             const CircuitRequest& request,
                                             Models models,
                                             const Context& context);

// Spearman's correlation of the absolute scores of all parts: whether two methods put them in one
// order. Nothing where either has no circuit.
std::optional<double> rank_correlation(const ModelCircuit& a, const ModelCircuit& b);

// Several kinds of one model, one circuit a kind. Reports tell the kinds apart where there are
// several.
std::vector<ModelCircuit> find_model_circuits(const LoadedModel& model,
                                              const TaskSelection& selection,
                                              std::span<const SearchOptions> kinds,
                                              const Context& context);

// With kEvery, the score of every part too, and of attention edges those of every prompt that
// matter most: a prompt has a hundred thousand.
enum class Scores { kEvery, kLeftOut };
inline constexpr std::size_t kCellsOfPrompt = 10;
Json to_json(const ModelCircuit& circuit, Scores scores = Scores::kEvery,
             std::size_t cells_of_prompt = kCellsOfPrompt);
// The task, how parts were scored and chosen, and every model's circuit with its curve.
Json to_json(const CircuitsOfKind& circuits, Scores scores,
             std::size_t cells_of_prompt = kCellsOfPrompt);
// Of several methods: each as above, and the rank correlations of every pair in every model.
Json methods_json(const std::vector<CircuitsOfKind>& methods, Scores scores,
                  std::size_t cells_of_prompt = kCellsOfPrompt);

// Sizes side by side with the ratio to the first model, what each model can do, and each one's
// `top` first parts.
std::string text_of(const CircuitsOfKind& circuits, std::size_t top);
// The circuits by several methods: for each model sizes, rank correlations and the first method's
// `top` parts as every method scores them.
std::string methods_text(const std::vector<CircuitsOfKind>& methods, std::size_t top);
// "12", "none claimed", "not carried", "level not reached".
std::string size_text(const ModelCircuit& circuit);
// The effect with no part kept: "12.3 %"; "" where there is no circuit.
std::string none_kept_text(const ModelCircuit& circuit);
// "2.50x"; "" for the first model itself and where there is no ratio.
std::string ratio_text(const ModelCircuit& first, const ModelCircuit& circuit);

// -------------------------------------------------------------------------------------------------
// What is drawn of circuits: the inputs of the figures and the Graphviz files, from circuits of
// models side by side.

// The prompt that figures draw: the first that every model with a circuit answers, since one that a
// model fails shows what it does wrong.
struct ExamplePrompt {
  std::string text = {};    // of the clean prompt
  std::string chosen = {};  // "the first that both models answer", or that there is none
};
ExamplePrompt example_prompt(const CircuitsOfKind& circuits, Models models);

// Explained effect against parts kept, a chart a kind. Nullopt when no model has a circuit.
std::optional<figure::CircuitCurves> curves_of(std::span<const CircuitsOfKind> kinds);

// The circuits' heads on the example prompt, a panel a model, in order of importance. Runs
// `models`, those of the circuits in their order. Nullopt when no circuit has a head.
std::optional<figure::AttentionGrid> grid_of(const CircuitsOfKind& circuits,
                                             Models models);

// Edges that a drawing holds at most; the strongest are drawn.
inline constexpr std::size_t kMostDrawnEdges = 200;

// The circuits of edges, a panel a model. Nullopt when there is no edge to draw.
std::optional<figure::CircuitDrawing> drawing_of(const CircuitsOfKind& circuits);

// Every model's whole circuit of edges for Graphviz. Names have no ending and are fit for files.
struct DotFile {
  std::string name, text;
};
std::vector<DotFile> dots_of(const CircuitsOfKind& circuits);

// The name of a task or model as a part of a file's name: letters, digits, '.', '_' and '-'.
std::string file_part(const std::string& name);
// Of a task: of a file only its name, without folder and ending.
std::string task_file_part(const LoadedTask& task);

// -------------------------------------------------------------------------------------------------
// The circuits of a task in models side by side, for comparisons: heads, edges and attention edges,
// and what the report page and the data say of them.

struct TaskCircuits {
  std::vector<CircuitsOfKind> kinds;  // each one circuit a model

  const LoadedTask& task() const { return kinds[0][0].task; }  // as the first model's
  const CircuitsOfKind* find(Parts parts) const;
};

// What is searched for, and how hard.
struct CircuitEffort {
  double level = 0.9;
  int steps = 5;  // of integrated gradients
};

// Heads by exact importance, edges by integrated gradients, attention edges by the gradient of the
// clean run.
TaskCircuits find_task_circuits(const TaskSelection& selection, Models models,
                                const CircuitEffort& effort, const Context& context);

// The figures of a task, as far as there is something to draw. Runs `models`, those of the
// circuits.
struct TaskFigures {
  std::optional<figure::CircuitCurves> curves = {};
  std::optional<figure::AttentionGrid> grid = {};
  std::optional<figure::CircuitDrawing> drawing = {};
  std::optional<figure::TokenCircuit> tokens = {};  // attention edges over one prompt
};
TaskFigures task_figures(const TaskCircuits& found, Models models);

// The section of the page, with these figures as SVG.
ReportTask task_section(const TaskCircuits& found, const TaskFigures& figures,
                        const FigureStyle& style);

// Without the scores of the parts, which are far too many for a summary.
Json to_json(const TaskCircuits& found);
// Sizes side by side.
std::string text_of(const TaskCircuits& found);

// -------------------------------------------------------------------------------------------------
// Circuits of attention edges drawn over one prompt, models side by side.

// MLPs are drawn where they matter: where one at one position is worth at least this share of the
// metric's difference between the clean and the corrupt prompt, by the gradient of the clean run.
inline constexpr double kMlpShare = 0.05;

// The kept edges of the first prompt of the first model that has a circuit, a panel a model that
// takes the prompt as the same tokens. Runs `models`, those of the circuits in their order, for the
// MLPs. Nullopt when the circuits are not of attention edges or there is no edge to draw.
std::optional<figure::TokenCircuit> token_circuit_of(const CircuitsOfKind& circuits,
                                                     Models models);

// -------------------------------------------------------------------------------------------------
// A patch at every layer and head, or every layer and position, of a task's runs: models side by
// side, as numbers and as heat maps.

struct PatchRequest {
  TaskSelection task = {};
  std::vector<Site> sites = {Site::kZ};
  std::optional<SweepAxis> by = {};  // none: heads or experts where the site has them
  PatchDirection direction = PatchDirection::kNoising;
  Replacement replacement = Replacement::kCorrupt;  // of noising
  // Only prompts of the commonest length (the shorter of equals), so that positions mean the same.
  bool one_length = false;
};

Knobs knobs_of(PatchRequest& request);

// Throws RequestError for what does not go together and Error for a task that there is not; for
// callers that want to fail before long work.
void check_request(const PatchRequest& request);

// One site of one model.
struct SweptSite {
  Site site = Site::kZ;
  SweepAxis axis = SweepAxis::kHead;
  PatchSweep sweep = {};
  // Heads and experts as numbers; positions as the tokens that all prompts have there, or numbers.
  std::vector<std::string> columns = {};
  std::vector<std::string> roles = {};  // of positions, that all prompts share; "": none

  // "L3H7", "L3E5", "L3 position -2", "L3 position 4 ' to'", "L3 position -5 S2": of a cell of the
  // sweep's effects.
  std::string place(std::size_t cell) const;
  // Cells by their absolute effect, the strongest first.
  std::vector<std::size_t> order() const;
};

struct SweptModel {
  std::string model = {}, label = {};
  LoadedTask task = {};
  std::vector<TaskPrompt> prompts = {};  // those of the task that were swept
  TaskCheck check = {};
  std::vector<SweptSite> sites = {};  // none when there is no effect to share out
};

struct PatchResult {
  PatchRequest request = {};
  std::vector<SweptModel> models = {};
};

PatchResult run(const PatchRequest& request, Models models,
                         const Context& context);

Json to_json(const PatchResult& result);
// With the `top` places of each site where the effect is largest.
std::string text_of(const PatchResult& result, std::size_t top);

// A panel a site and model. Nullopt when no model has an effect to draw.
std::optional<figure::LabelledMaps> figure_of(const PatchResult& result);

}  // namespace filigree::study
