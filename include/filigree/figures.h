// The kinds of figures.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "filigree/drawing.h"
#include "filigree/names.h"
#include "filigree/palette.h"

namespace filigree::figure {

// -------------------------------------------------------------------------------------------------
// Every chosen head of one or more models on one page: rounded panels of small square maps, in the
// order given.
//
// One fixed colour scale for all maps; what lies above the diagonal is left empty. Exact zero is
// the empty colour, the smallest other value is visibly tinted. Maps are taken as
// levels, so that a caller who computes head by head never holds more than one map of floats.

struct GridCell {
  std::size_t query = 0, key = 0;
};

struct GridHead {
  HeadId head = {};
  std::size_t tokens = 0;
  LevelMap map = {};
  // Places in AttentionGrid::roles; two for a hybrid. None: no colour.
  std::vector<std::size_t> roles = {};
  // Cells that are framed, and what is said of them below the map: "END \u2190 IO".
  std::vector<GridCell> marks = {};
  std::string note = {};
};

// The head's map from its weights, tokens x tokens, query by query. Errors name the head.
GridHead grid_head(const HeadId& head, std::span<const float> weights, std::int64_t tokens,
                   const ColorScale& scale = {});

struct GridPanel {
  std::string title = {};
  std::vector<GridHead> heads = {};
};

struct AttentionGrid {
  std::string title = {};
  std::vector<GridPanel> panels = {};  // one below the other
  ColorScale scale = {};               // the one that the maps were made with
  std::string scale_label = "attention weight";
  std::vector<std::string> roles =
      {};  // in the order of the colours; those that occur are in the legend
  std::vector<std::string> tokens = {};  // shown beside maps that are large enough
  std::string prompt = {};               // both underneath, wrapped
  std::string metric = {};
  std::size_t columns = 0;  // 0: as large maps as one page allows; the number of heads a layer
                            // makes each row one layer
  double width = 0;         // of the panels, in points; 0: that of a page
};

// Throws Error for a panel without heads, a role that is not listed, maps that do not fit the
// tokens, or marks outside their map.
Figure make_figure(const AttentionGrid& input, const Theme& theme);

// The columns that `columns` = 0 chooses for panels of as many heads.
std::size_t automatic_columns(std::span<const std::size_t> heads_per_panel, double width = 0);

// -------------------------------------------------------------------------------------------------
// How something gets from one token to another: for each model the heads that carry it, as small
// maps with the cell marked, the sources that modulate those heads, the sentence with its tokens
// numbered, and what is predicted. What is many looks like many.

struct CarryingMap {
  HeadId head = {};
  std::vector<float> weights = {};  // [tokens, tokens], rows are queries
  double share = 0;                 // of all that is carried
};

struct ModulatingToken {
  std::size_t position = 0;
  std::int64_t first_layer = 0, last_layer = 0;
  double share = 0;
};

struct CarriedPanel {
  std::string title = {};              // "GPT-2: 43 heads carry 80 %"
  std::vector<CarryingMap> maps = {};  // the strongest first
  std::vector<ModulatingToken> modulated_by = {};
  std::string answer = {};  // a token
  std::string note = {};    // behind it: "97 %"
};

struct CarriedPairFigure {
  std::string title = {};
  std::vector<std::string> tokens = {};
  std::size_t key = 0, query = 0;
  std::vector<CarriedPanel> panels = {};  // beside each other
  std::string caption = {};
};

// Throws Error, naming the panel, for maps that do not fit the tokens and positions that there are
// not.
Figure make_figure(const CarriedPairFigure& input, const Theme& theme);

// -------------------------------------------------------------------------------------------------
// How much of a task the most important parts of a model explain: the effect against the number of
// parts kept, on a log axis with a place for none, one chart a kind of part (heads, edges), one
// curve a model. The level that counts as explained is a line, the size of each model's circuit a
// point on it with a drop line, and the ratio of the sizes stands beside the smaller one.

struct EffectCurve {
  std::string name = {};            // of the model
  std::vector<double> kept = {};    // rising; 0, where it is there, stands left of the log axis
  std::vector<double> effect = {};  // 1: all of it
  std::vector<double> error = {};   // standard errors, drawn as a band; may be empty
  std::optional<double> size = {};  // parts of the circuit, one of `kept`; none: level not reached
};

struct EffectChart {
  std::string unit = "heads";            // of the x axis and of the notes
  std::vector<EffectCurve> curves = {};  // the first is what the others are compared with
};

struct CircuitCurves {
  std::string title = {};
  std::vector<EffectChart> charts = {};  // side by side
  double level = 0.9;
  std::string caption = {};
};

// Effects below -0.25 or above 1.3 are cut off. Throws Error, naming the curve, where lengths
// differ, numbers are not finite, `kept` does not rise, or the size is not among them.
Figure make_figure(const CircuitCurves& input, const Theme& theme);

// "2.9 × fewer", "1.4 × more" or "as many": `size` against `reference`.
std::string size_ratio(double reference, double size);

// -------------------------------------------------------------------------------------------------
// A circuit as a drawing: the heads and MLPs that a task needs and the edges between them, one
// panel a model. Colours tell what an edge goes into (query, key, value), widths how much it
// matters (by the square root, so that one strong edge does not make hairlines of the others),
// dashes that it works against the task.

struct CircuitPanel {
  std::string title = {};
  CircuitGraph graph = {};
};

struct CircuitDrawing {
  std::string title = {};
  std::vector<CircuitPanel> panels = {};  // beside each other, with the same rows and widths
  std::string score_label = "|score|";
  std::string caption = {};
};

// Throws Error for a panel without nodes and for graphs that check_graph() refuses.
Figure make_figure(const CircuitDrawing& input, const Theme& theme);

// -------------------------------------------------------------------------------------------------
// Heat maps with named rows and columns and, where wanted, a word in every cell: effects of patches
// by layer and head, contributions to a logit, the logit lens, composition of heads. One or more
// maps on a page, on one scale.

// Neighbouring rows or columns that belong together. Their label stands in for the single ones
// where the cells are too small for those; a gap, or a line where there is no gap, parts groups.
struct AxisGroup {
  std::string label = {};
  std::size_t count = 0;
};

struct MapAxis {
  std::string name = {};                 // "layer"
  std::vector<std::string> labels = {};  // one a row or column
  std::vector<AxisGroup> groups = {};    // none: one group
  bool gaps = false;                     // between groups, as for a column of another kind
  bool tokens = false;                   // labels are tokens, drawn in their visible form
};

struct MapPanel {
  std::string title = {};
  MapAxis rows = {}, columns = {};      // rows from the top
  std::vector<float> values = {};       // rows x columns; not a number: undefined, drawn grey
  std::vector<std::string> words = {};  // in the cells, as tokens; empty or as many as values
};

struct LabelledMaps {
  std::string title = {};
  std::vector<MapPanel> panels = {};  // beside each other where they fit, else below
  ScaleKind kind = ScaleKind::kDifference;
  double end = 0;  // of the scale; 0: the largest magnitude, rounded up to two digits
  std::string scale_label = {};
  std::string caption = {};
};

// Throws Error, naming the panel, where sizes do not fit, a value is infinite, or a magnitude is
// negative.
Figure make_figure(const LabelledMaps& input, const Theme& theme);

// -------------------------------------------------------------------------------------------------
// The correlation of every head with every other as one heat map, in an order given by whoever
// clustered the heads. With a second matrix the two models share the map: the first below the
// diagonal, the second above it.

struct CorrelationMap {
  std::string title = {};
  std::vector<std::string> names = {};
  // names x names, in [-1, 1]; NaN where a correlation does not exist, which is drawn grey.
  std::vector<float> correlations = {};
  std::vector<float> above = {};  // of the second model, or none
  std::string name = {}, above_name = {};
  std::vector<std::size_t> order = {};  // a permutation of the names; none: as they come
  // Neighbours that belong together, such as layers, in the order drawn: their labels stand for the
  // names, and lines part them. None: every name is written.
  std::vector<AxisGroup> groups = {};
  std::string scale_label = "correlation";
  std::string caption = {};
};

// Throws Error where sizes do not fit, a value lies outside [-1, 1], `order` is no permutation, or
// groups do not hold as many as there are names.
Figure make_figure(const CorrelationMap& input, const Theme& theme);

// -------------------------------------------------------------------------------------------------
// An attribution graph over a prompt: tokens along the bottom, layers upwards, features as labelled
// boxes above their tokens, what features miss as empty ones, predictions on top. Lines between
// tokens are attention: they are coloured and name the head that carries most; lines at one token
// are grey.

enum class FeatureNodeKind { kEmbedding, kFeature, kError, kOutput };

struct FeatureNode {
  FeatureNodeKind kind = FeatureNodeKind::kFeature;
  std::size_t layer = 0;  // of features and errors
  std::size_t position = 0;
  std::string label = {};
  double influence = 0;
};

struct FeatureEdge {
  std::size_t from = 0, to = 0;  // nodes
  double influence = 0;          // at least 0
  bool against = false;          // it lowers what it goes to
  std::string heads = {};        // between tokens: "L5H3"
};

struct FeatureGraphPanel {
  std::string title = {};
  std::vector<FeatureNode> nodes = {};
  std::vector<FeatureEdge> edges = {};
};

struct FeatureGraphFigure {
  std::string title = {};
  std::vector<std::string> tokens = {};
  std::size_t layers = 0;
  std::vector<FeatureGraphPanel> panels = {};  // one below the other
  std::string caption = {};
};

inline constexpr std::size_t kMostFeatureEdges = 600;  // drawn of a panel, the strongest

// Throws Error, naming the panel, for layers, positions and nodes that there are not and influence
// that is negative or not finite.
Figure make_figure(const FeatureGraphFigure& input, const Theme& theme);

// -------------------------------------------------------------------------------------------------
// One head on one page: its map on a prompt (beside its twin's), its strongest edges, what tasks
// lose without it, and lists of words about it.

struct HeadPageMap {
  std::string name = {};            // "L6H11 of sparse"
  std::vector<float> weights = {};  // tokens x tokens, query by query
  std::size_t color = 0;            // of the model, in the theme's categories
};

// One row of bars, a value with its error for each map's model; "" in notes where there is nothing
// to say.
struct HeadPageBar {
  std::string name = {};
  std::vector<double> values = {}, errors = {};
  bool muted = false;  // a task that the model cannot do
};

// A heading and rows of two columns.
struct HeadPageList {
  std::string heading = {};
  std::vector<std::string> left = {}, right = {};
};

struct HeadPage {
  std::string title = {};
  std::vector<std::string> facts = {};  // sentences, a line each where there is room
  std::vector<std::string> tokens = {};
  std::vector<HeadPageMap> maps = {};  // one or two
  std::string bars_heading = {};
  std::vector<HeadPageBar> bars = {};
  std::vector<HeadPageList> lists = {};  // the first `beside` beside the maps, the others beside
  std::size_t beside = 1;                // the bars
  std::string caption = {};
};

// Throws Error for maps that do not fit the tokens and bars that do not fit the maps.
Figure make_figure(const HeadPage& input, const Theme& theme);

// -------------------------------------------------------------------------------------------------
// One head in both models: dense | sparse | difference, with the tokens along the sides.

struct HeadStrip {
  std::string title = {};  // e.g. "L5H1"
  std::vector<std::string> tokens = {};
  std::string dense_name = "dense", sparse_name = "sparse";
  std::vector<float> dense = {}, sparse = {};  // tokens x tokens, query by query
  ColorScale scale = {};
  std::string scale_label = "attention weight";
  double difference_end = 1;  // the third map goes from -this to +this
  std::string caption = {};
};

// The difference is sparse less dense. Throws Error where sizes do not fit or a value is not
// finite.
Figure make_figure(const HeadStrip& input, const Theme& theme);

// -------------------------------------------------------------------------------------------------
// Pairs of heads: one small plot for each two of the chosen heads, a point for each causal (query,
// key), its weight in one head against its weight in the other. Below the diagonal the plots, on it
// each head's own distribution, above it the correlations.

struct ScatterHead {
  std::string name = {};
  std::vector<float> weights = {};  // the same number and order of (query, key) for every head
};

struct ScatterPanel {
  std::string title = {};
  std::vector<ScatterHead> heads = {};
  // heads x heads; NaN where a correlation does not exist (a head that is all zero).
  std::vector<float> pearson = {}, spearman = {};  // spearman may be left out
};

struct ScatterMatrix {
  std::string title = {};
  std::vector<ScatterPanel> panels = {};  // one or two beside each other, further ones below
  double axis_end = 1;  // all axes go from 0 to here; points beyond lie on the edge
  std::string caption = {};
};

// Up to kMostDots points of a plot are drawn one by one; more become a picture of their density, on
// a logarithmic scale, so that the file does not grow with them.
inline constexpr std::size_t kMostDots = 300;

// Throws Error, naming the head, where lengths differ or a weight is not finite.
Figure make_figure(const ScatterMatrix& input, const Theme& theme);

// -------------------------------------------------------------------------------------------------
// Statistics of the models beside each other: one small chart for each statistic, one bar a model
// (or, with groups, one a model and layer), with intervals. On a logarithmic axis, where a bar's
// length would mean nothing, dots stand for bars.

struct Estimate {
  double value = 0;
  double low = 0, high = 0;  // the interval; both equal to the value: none is drawn
};

struct Statistic {
  std::string name = {};                 // "peak weight"
  std::string note = {};                 // below the name: the change with its interval and p-value
  AxisSpec axis = {};                    // its label is not drawn: the name stands above
  std::vector<std::string> groups = {};  // below the bars, such as layers; none: one group
  // estimates[model][group].
  std::vector<std::vector<Estimate>> estimates = {};
};

struct StatisticsBars {
  std::string title = {};
  std::vector<std::string> models = {};
  std::vector<Statistic> statistics = {};
  std::string caption = {};
};

// Throws Error, naming the statistic, where numbers are missing, not finite or outside their
// interval.
Figure make_figure(const StatisticsBars& input, const Theme& theme);

// -------------------------------------------------------------------------------------------------
// Sentences with arcs between their tokens: what each takes from earlier ones, one model's above
// the line and, of the same sentence, another's below. Long sentences go on in a new line of the
// page only as a whole: a figure is as wide as its longest sentence.

struct TokenArc {
  std::size_t query = 0, key = 0;  // places in the tokens, the key not after the query
  double weight = 0;               // 0 to 1
};

struct ArcSide {
  std::string name = {};  // of a model
  std::size_t color = 0;  // category of the theme
  std::vector<TokenArc> arcs = {};
};

struct ArcSentence {
  std::vector<std::string> tokens = {};
  ArcSide above = {};
  std::optional<ArcSide> below = {};
  // The token that the arcs are about: bold, and arcs that only pass it on are dashed.
  std::optional<std::size_t> chosen = {};
  std::optional<std::size_t> fresh = {};  // tokens from here on are new: bold
};

struct TokenArcs {
  std::string title = {};
  std::vector<ArcSentence> sentences = {};  // one below the other
  std::string caption = {};
};

// Of a side at most so many arcs are drawn, the strongest.
inline constexpr std::size_t kMostArcs = 2000;

// Throws Error, naming the sentence and the arc, for places that there are not, keys after their
// query and weights that are not between 0 and 1.
Figure make_figure(const TokenArcs& input, const Theme& theme);

// -------------------------------------------------------------------------------------------------
// The edges of a circuit over a prompt, and the lines that stand for them in a drawing: one for all
// heads of a layer between the same two tokens.

struct TokenEdge {
  HeadId head = {};
  std::size_t query = 0, key = 0;        // places in the tokens, the key not after the query
  double score = 0;                      // below 0: it works against the answer
  std::optional<double> attention = {};  // the head's weight on the key, where it is known
};

struct TokenLine {
  std::size_t layer = 0, query = 0, key = 0;
  std::vector<std::int64_t> heads = {};  // strongest first
  std::vector<double> attention = {};    // weights of the heads; none unless all are known
  double score = 0;                      // the sum
  double weight = 0;                     // the sum of the absolute scores
};

// The heaviest first.
std::vector<TokenLine> token_lines(const std::vector<TokenEdge>& edges);

// "L6H7"; of several heads "L6H7,9", of more than three their number.
std::string name_of(const TokenLine& line);
// With what they attend with behind it: "L6H7 0.93", "L6H7,9 0.93,0.41". The name alone where there
// are more than three heads or the weights are not known.
std::string name_with_attention(const TokenLine& line);

// -------------------------------------------------------------------------------------------------
// A circuit of attention edges over one prompt: the tokens along the bottom, layers upwards, a line
// from the token that a head reads (in its layer) to the token that it writes to (in the row
// above), MLPs as squares, the answer on top. One panel a model, all with the same rows and the
// same scale, so that what is many looks like many.
//
// Edges of one layer between the same two tokens share a line, whose weight is the sum of theirs.
// Up to kMostLines lines of a panel are drawn, the strongest; the panel says how many edges and
// lines there are and how many of them are drawn.

struct TokenMlp {
  std::size_t layer = 0, position = 0;
  double score = 0;
};

struct TokenPanel {
  std::string title = {};
  std::vector<TokenEdge> edges = {};
  std::vector<TokenMlp> mlps = {};
  std::string answer = {};  // a token, at the end of the last position
  std::string note = {};    // beside it
};

struct TokenCircuit {
  std::string title = {};
  std::vector<std::string> tokens = {};
  std::vector<std::string> roles = {};  // "IO" of each token, "" for none; none: no roles
  std::size_t layers = 0;
  std::vector<TokenPanel> panels = {};  // two beside each other, further ones below
  std::string score_label = "|score|";
  std::string caption = {};
};

inline constexpr std::size_t kMostLines = 1500;

// Throws Error, naming the panel and the edge, for layers and positions that there are not, keys
// after their query and scores that are not finite.
Figure make_figure(const TokenCircuit& input, const Theme& theme);

// -------------------------------------------------------------------------------------------------
// How training went: of sparse runs loss gap, active edges and the multiplier over steps, of dense
// ones the loss, a chart each on one x axis. Steps at which something went wrong are marked.

// Each list is empty or has a value for every step.
struct TrainingRun {
  std::string name = {};
  std::vector<double> steps = {};
  std::vector<double> loss = {};          // nats, above 0
  std::vector<double> accuracy = {};      // share of the answers
  std::vector<double> loss_gap = {};      // nats over the teacher
  std::vector<double> active_edges = {};  // fraction; steps with none have no place on the log axis
  std::vector<double> multiplier = {};
  // A step and a word, such as "stopped"; on the uppermost chart that the run has.
  std::vector<std::pair<double, std::string>> marks = {};
};

struct TrainingCurves {
  std::string title = {};
  std::vector<TrainingRun> runs = {};
  std::optional<double> margin = {};  // the gap that is allowed, marked
  std::string caption = {};
};

// A quantity that no run has gets no chart. Throws Error when nothing is left or lengths differ.
Figure make_figure(const TrainingCurves& input, const Theme& theme);

// -------------------------------------------------------------------------------------------------
// How well transcoders stand in for the MLPs of their models, layer by layer, a colour a model:
// what is left unexplained, how many features are active, how many never or all too often, how much
// of the loss one layer's features recover, and how often features are active.

// Each list but the last has a value for every layer.
struct MeasuredTranscoder {
  std::string name = {};
  std::vector<double> nmse = {};
  std::vector<double> active = {};         // features at a token
  std::vector<double> dead = {};           // share of the features
  std::vector<double> dense = {};          // likewise
  std::vector<double> recovered = {};      // share of the loss; empty: not measured
  std::vector<std::int64_t> density = {};  // features in each bin, the last one ending at 1
};

struct TranscoderQuality {
  std::string title = {};
  std::vector<MeasuredTranscoder> transcoders = {};
  int density_steps = 1;                   // bins of a power of ten
  std::vector<std::string> captions = {};  // one paragraph each
};

// Without a measured recovery that chart is left out, and a layer whose recovery is no number is
// left out of it; what is below -25 % or above 125 % stands at the edge. Throws Error, naming the
// transcoder, where lengths differ or another number is not finite.
Figure make_figure(const TranscoderQuality& input, const Theme& theme);

}  // namespace filigree::figure
