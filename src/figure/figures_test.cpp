// What figures do with input that is empty, large, broken or strange.
#include "filigree/figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "support/drawn_figures.h"
#include "support/errors.h"
#include "support/figure_samples.h"

namespace filigree::figure {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

AttentionGrid grid_of(std::vector<GridHead> heads) {
  return {.title = "title", .panels = {{.title = "panel", .heads = std::move(heads)}}};
}

TEST(AttentionGrid, WithoutHeadsIsAnError) {
  EXPECT_THAT(error_of([] { make_figure(AttentionGrid{}, light_theme()); }), HasSubstr("no panel"));
  EXPECT_THAT(error_of([] { make_figure(grid_of({}), light_theme()); }),
              AllOf(HasSubstr("'panel'"), HasSubstr("no heads")));
}

TEST(AttentionGrid, NamesTheHeadThatIsWrong) {
  EXPECT_THAT(error_of([] {
                grid_head({3, 4}, std::vector<float>{1, 0, kNan, 1}, 2);
              }),
              AllOf(HasSubstr("head L3H4"), HasSubstr("query 1, key 0"), HasSubstr("nan")));
  AttentionGrid grid = grid_of({samples::sample_head(5, 8, false)});
  EXPECT_THAT(error_of([&] { make_figure(grid, light_theme()); }),
              AllOf(HasSubstr("L0H5"), HasSubstr("role 5")));
  grid.roles = samples::role_names();
  grid.tokens = {"one", "two"};
  EXPECT_THAT(error_of([&] { make_figure(grid, light_theme()); }),
              AllOf(HasSubstr("L0H5"), HasSubstr("8 tokens"), HasSubstr("2 tokens")));
  grid.tokens.clear();
  grid.panels[0].heads.push_back({.head = {7, 1}});
  EXPECT_THAT(error_of([&] { make_figure(grid, light_theme()); }), HasSubstr("L7H1"));
}

TEST(AttentionGrid, HasTheWidthAskedForAndMarksCells) {
  AttentionGrid grid =
      grid_of({samples::sample_head(2, 8, false), samples::sample_head(3, 8, false)});
  grid.panels[0].heads[0].roles.clear(), grid.panels[0].heads[1].roles.clear();
  grid.columns = 2;
  const double usual = make_figure(grid, light_theme()).size.width;
  const double height = make_figure(grid, light_theme()).size.height;
  grid.width = 300;
  EXPECT_LE(make_figure(grid, light_theme()).size.width, 300 + 24);
  EXPECT_LT(make_figure(grid, light_theme()).size.width, usual);
  grid.width = 0;
  grid.panels[0].heads[1].marks = {{7, 3}};
  grid.panels[0].heads[1].note = "END \u2190 IO";
  EXPECT_GT(make_figure(grid, light_theme()).size.height, height);  // a line for the note
  draw(make_figure(grid, dark_theme()));
  grid.panels[0].heads[1].marks = {{3, 4}};
  EXPECT_THAT(error_of([&] { make_figure(grid, light_theme()); }),
              AllOf(HasSubstr("L0H3"), HasSubstr("query 3, key 4")));
  grid.panels[0].heads[1].marks.clear();
  grid.width = 20;
  EXPECT_THAT(error_of([&] { make_figure(grid, light_theme()); }), HasSubstr("20 points"));
}

TEST(CorrelationMap, NamesGroupsInsteadOfHeads) {
  CorrelationMap map = samples::correlations(24);
  const double named = make_figure(map, light_theme()).size.width;
  map.groups = {{"L0", 12}, {"L1", 12}};
  draw(make_figure(map, light_theme()));
  EXPECT_LT(make_figure(map, light_theme()).size.width, named);  // "L0" is shorter than "L0H11"
  map.groups.pop_back();
  EXPECT_THAT(error_of([&] { make_figure(map, light_theme()); }),
              AllOf(HasSubstr("12"), HasSubstr("24")));
}

TEST(AttentionGrid, OneTokenAndAThousand) {
  for (const std::size_t tokens : {std::size_t{1}, std::size_t{2}, std::size_t{1024}}) {
    std::vector<float> map(tokens * tokens);
    for (std::size_t i = 0; i < tokens; ++i) map[i * tokens + i] = 1;
    const Picture picture = draw(make_figure(
        grid_of({grid_head({0, 0}, map, static_cast<std::int64_t>(tokens))}), light_theme()));
    const auto dark = static_cast<std::size_t>(
        std::count(picture.pixels.begin(), picture.pixels.end(), 0x08306Bu));
    EXPECT_GT(dark, tokens == 1024 ? 150u : 5000u) << tokens;
  }
}

TEST(AttentionGrid, AnEmptyMapHasNoColour) {
  const std::vector<float> zero(16 * 16), tiny(16 * 16, 1e-20f);
  const auto tinted = [](const std::vector<float>& map) {
    const Picture picture = draw(make_figure(grid_of({grid_head({0, 0}, map, 16)}), print_theme()));
    return std::count(picture.pixels.begin(), picture.pixels.end(), 0xE6EFF8u);
  };
  EXPECT_LT(tinted(zero), 100);  // the colour bar
  EXPECT_GT(tinted(tiny), 10'000);
}

TEST(AttentionGrid, LongTextIsCutAndTheWidthKept) {
  AttentionGrid grid = samples::grid(3, 2, 8, false);
  const Size usual = make_figure(grid, light_theme()).size;
  const std::string text = std::string(3000, 'x') + " \n\x01\xFF " + std::string(3000, 'y');
  grid.title = grid.prompt = grid.panels[0].title = text;
  const Figure figure = make_figure(grid, light_theme());
  EXPECT_EQ(figure.size.width, usual.width);
  EXPECT_LE(figure.size.height, usual.height + 2 * line_height(light_theme().text_size));
  draw(figure);
}

TEST(AttentionGrid, ColumnsFollowTheNumberOfHeads) {
  const auto columns = [](std::vector<std::size_t> heads) { return automatic_columns(heads); };
  EXPECT_EQ(columns({1}), 1u);
  EXPECT_EQ(columns({2}), 2u);
  EXPECT_EQ(columns({144, 144}), 16u);
  EXPECT_GE(columns({61, 9}), 8u);
  AttentionGrid grid = samples::grid(144, 144, 4, true);
  EXPECT_LT(make_figure(grid, light_theme()).size.height, 800);
  grid.columns = 12;
  EXPECT_GT(make_figure(grid, light_theme()).size.height, 800);
}

TEST(HeadStrip, OddInput) {
  EXPECT_THAT(error_of([] { make_figure(HeadStrip{.title = "L1H2"}, light_theme()); }),
              AllOf(HasSubstr("L1H2"), HasSubstr("no tokens")));
  HeadStrip input = samples::strip({"a", "b"});
  input.sparse.pop_back();
  EXPECT_THAT(error_of([&] { make_figure(input, light_theme()); }), HasSubstr("sparse 3"));
  input = samples::strip({"a", "b"});
  input.dense[2] = kNan;
  EXPECT_THAT(error_of([&] { make_figure(input, light_theme()); }), HasSubstr("L5H1', dense"));
  draw(make_figure(samples::strip({"alone"}), dark_theme()));
  draw(make_figure(samples::strip(samples::numbered_tokens(1024)), dark_theme()));
}

TEST(HeadPage, OddInput) {
  EXPECT_THAT(error_of([] { make_figure(HeadPage{.title = "L1H2"}, light_theme()); }),
              AllOf(HasSubstr("L1H2"), HasSubstr("no tokens")));
  HeadPage input = samples::head_sample(2);
  input.maps[1].weights.pop_back();
  EXPECT_THAT(error_of([&] { make_figure(input, light_theme()); }),
              HasSubstr("maps of 196 values"));
  input = samples::head_sample(2);
  input.bars[1].values.pop_back();
  EXPECT_THAT(error_of([&] { make_figure(input, light_theme()); }), HasSubstr("'greater-than'"));
  input.bars[1].values = {kNan, 0};
  EXPECT_THAT(error_of([&] { make_figure(input, light_theme()); }), HasSubstr("not finite"));
  input = samples::head_sample(2);
  input.lists[2].right.pop_back();
  EXPECT_THAT(error_of([&] { make_figure(input, light_theme()); }),
              HasSubstr("columns of 2 and 1"));
  input = samples::head_sample(1);
  input.beside = 9;  // all of them
  draw(make_figure(input, light_theme()));
  // No bars, no lists, many tokens.
  input = {.title = "L0H0", .tokens = samples::numbered_tokens(300)};
  input.maps.push_back({"L0H0", std::vector<float>(90000, 0.5f)});
  draw(make_figure(input, dark_theme()));
}

TEST(ScatterMatrix, OddInput) {
  ScatterMatrix input = samples::scatter(6);
  input.panels[1].heads[2].weights[4] = kNan;
  EXPECT_THAT(error_of([&] { make_figure(input, light_theme()); }),
              AllOf(HasSubstr("Sparse GPT-2"), HasSubstr("head L2H5"), HasSubstr("nan")));
  input = samples::scatter(6);
  input.panels[0].heads[3].weights.pop_back();
  EXPECT_THAT(error_of([&] { make_figure(input, light_theme()); }), HasSubstr("L3H7"));
  input = samples::scatter(6);
  input.panels[0].heads.resize(1);
  EXPECT_THAT(error_of([&] { make_figure(input, light_theme()); }), HasSubstr("at least 2"));
  input = samples::scatter(6);
  for (float& weight : input.panels[0].heads[0].weights) weight = 0;
  for (float& value : input.panels[0].pearson) value = kNan;  // of a head that is all zero
  draw(make_figure(input, light_theme()));
}

TEST(ScatterMatrix, ManyPointsDoNotMakeALargeFile) {
  const Figure figure = make_figure(samples::scatter(300), light_theme());  // 45,150 points
  EXPECT_LT(render(figure, Format::kSvg).size(), 400'000u);
  EXPECT_LT(render(figure, Format::kPdf).size(), 200'000u);
}

TEST(CorrelationMap, OddInput) {
  EXPECT_THAT(error_of([] { make_figure(CorrelationMap{}, light_theme()); }),
              HasSubstr("no heads"));
  CorrelationMap input = samples::correlations(6);
  input.order[2] = input.order[1];
  EXPECT_THAT(error_of([&] { make_figure(input, light_theme()); }), HasSubstr("comes twice"));
  input.order[2] = 6;
  EXPECT_THAT(error_of([&] { make_figure(input, light_theme()); }), HasSubstr("6 is none"));
  input = samples::correlations(6);
  input.correlations[1] = 1.5f;
  EXPECT_THAT(error_of([&] { make_figure(input, light_theme()); }),
              AllOf(HasSubstr("L0H0 and L0H1"), HasSubstr("1.5")));
  input.correlations[1] = kNan;
  input.order.clear();
  draw(make_figure(input, light_theme()));
  draw(make_figure(CorrelationMap{.names = {"L0H0"}, .correlations = {1}}, light_theme()));
}

TEST(StatisticsBars, OddInput) {
  EXPECT_THAT(error_of([] { make_figure(StatisticsBars{.models = {"m"}}, light_theme()); }),
              HasSubstr("none"));
  StatisticsBars input = samples::statistics();
  input.statistics[1].estimates[0][0].value = kNan;
  EXPECT_THAT(error_of([&] { make_figure(input, light_theme()); }), HasSubstr("'Row mass'"));
  input = samples::statistics();
  input.statistics[3].estimates[1][0] = {0, 0, 0};
  EXPECT_THAT(error_of([&] { make_figure(input, light_theme()); }),
              AllOf(HasSubstr("'Active edges'"), HasSubstr("logarithmic")));
  input = samples::statistics();
  input.statistics[0].estimates.pop_back();
  EXPECT_THAT(error_of([&] { make_figure(input, light_theme()); }), HasSubstr("1 models"));
  input = {.models = {"m"}, .statistics = {{.name = "zero", .estimates = {{{0, 0, 0}}}}}};
  draw(make_figure(input, light_theme()));
}

// A note that is too long for its plot is wrapped, not cut, and the page grows by the line.
TEST(StatisticsBars, LongNotesHaveRoom) {
  StatisticsBars input = {.models = {"m"}};
  for (const char* name : {"a", "b", "c", "d", "e"})
    input.statistics.push_back({.name = name, .note = "+1", .estimates = {{{1, 1, 1}}}});
  const double short_notes = make_figure(input, light_theme()).size.height;
  input.statistics[1].note = input.statistics[2].note =
      "+72 points [+67, +77], p \u2264 0.0078 of these prompts";
  EXPECT_DOUBLE_EQ(make_figure(input, light_theme()).size.height,
                   short_notes + line_height(light_theme().small_size));
}

// The legend takes a second line when the names need one, and the page grows by it.
TEST(TrainingCurves, ALongLegendHasRoom) {
  TrainingCurves curves;
  for (const char* name : {"first", "second", "third"})
    curves.runs.push_back({name, {1, 2}, {0.1, 0.2}, {}, {}});
  const double one_line = make_figure(curves, light_theme()).size.height;
  for (TrainingRun& run : curves.runs) run.name += " run, lambda at most 40";
  EXPECT_GT(make_figure(curves, light_theme()).size.height, one_line + 5);
}

TEST(TrainingCurves, OddInput) {
  EXPECT_THAT(error_of([] { make_figure(TrainingCurves{}, light_theme()); }), HasSubstr("no run"));
  TrainingCurves input = samples::training();
  input.runs[1].multiplier.pop_back();
  EXPECT_THAT(error_of([&] { make_figure(input, light_theme()); }),
              AllOf(HasSubstr("λ at most 60"), HasSubstr("multiplier")));
  input = samples::training();
  input.runs[0].loss_gap[3] = kNan;
  EXPECT_THAT(error_of([&] { make_figure(input, light_theme()); }),
              AllOf(HasSubstr("λ free"), HasSubstr("nan")));
  // A gate that closed altogether, a run of one step, a quantity that is missing.
  input = samples::training();
  input.runs[0].active_edges[5] = 0;
  input.runs[1].loss_gap.clear();
  draw(make_figure(input, light_theme()));
  draw(make_figure(TrainingCurves{.runs = {{.name = "short", .steps = {1}, .loss_gap = {0.5}}}},
                   light_theme()));
}

TEST(TranscoderQuality, OddInput) {
  EXPECT_THAT(error_of([] { make_figure(TranscoderQuality{}, light_theme()); }),
              HasSubstr("no transcoder"));
  TranscoderQuality input = samples::measured_transcoders(2);
  input.transcoders[1].dense.pop_back();
  EXPECT_THAT(error_of([&] { make_figure(input, light_theme()); }),
              AllOf(HasSubstr("'Sparse GPT-2'"), HasSubstr("12 layers"), HasSubstr("11")));
  input = samples::measured_transcoders(2);
  input.transcoders[0].nmse[3] = kNan;
  EXPECT_THAT(error_of([&] { make_figure(input, light_theme()); }),
              AllOf(HasSubstr("'GPT-2'"), HasSubstr("nan")));
  // A layer with nothing to recover, one that is far off, no feature that is ever active.
  input = samples::measured_transcoders(2);
  input.transcoders[0].recovered[2] = kNan;
  input.transcoders[0].recovered[3] = -1e9;
  for (std::int64_t& count : input.transcoders[1].density) count = 0;
  draw(make_figure(input, light_theme()));
  draw(make_figure(TranscoderQuality{.transcoders = {{.nmse = {0.1},
                                                      .active = {3},
                                                      .dead = {1},
                                                      .dense = {0},
                                                      .recovered = {kNan},
                                                      .density = {0}}}},
                   light_theme()));
}

TEST(LineChart, OddInput) {
  LineFigure input = samples::curves_with_notes();
  input.chart.curves[0].x[2] = 0;
  EXPECT_THAT(error_of([&] { line_figure(input, light_theme()); }),
              AllOf(HasSubstr("'GPT-2'"), HasSubstr("logarithmic")));
  input = samples::curves_with_notes();
  input.chart.curves[1].high.pop_back();
  EXPECT_THAT(error_of([&] { line_figure(input, light_theme()); }), HasSubstr("band"));
  EXPECT_THAT(error_of([] { line_figure({}, light_theme()); }), HasSubstr("no curve"));
  // A long run stays a small file.
  LineFigure run = {.chart = {.curves = {{.label = "loss"}}}};
  for (int step = 0; step < 300'000; ++step) {
    run.chart.curves[0].x.push_back(step);
    run.chart.curves[0].y.push_back(std::sin(step * 0.37) + step * 1e-5);
  }
  EXPECT_LT(render(line_figure(run, light_theme()), Format::kSvg).size(), 1'000'000u);
}

TEST(CircuitCurves, OddInput) {
  EXPECT_THAT(error_of([] { make_figure(CircuitCurves{}, light_theme()); }), HasSubstr("no chart"));
  CircuitCurves input = samples::effect_curves(2);
  input.charts[1].curves[1].size = 97;
  EXPECT_THAT(error_of([&] { make_figure(input, light_theme()); }),
              AllOf(HasSubstr("'Sparse GPT-2' (edges)"), HasSubstr("97 is not a point")));
  input = samples::effect_curves(1);
  input.charts[0].curves[0].effect[3] = kNan;
  EXPECT_THAT(error_of([&] { make_figure(input, light_theme()); }),
              AllOf(HasSubstr("'GPT-2' (heads)"), HasSubstr("nan")));
  input = samples::effect_curves(1);
  input.charts[0].curves[0].kept[3] = 1;
  EXPECT_THAT(error_of([&] { make_figure(input, light_theme()); }), HasSubstr("must rise"));
  input = samples::effect_curves(1);
  input.charts[0].curves[0].error.pop_back();
  EXPECT_THAT(error_of([&] { make_figure(input, light_theme()); }), HasSubstr("errors"));
  // A level that is not reached, a circuit of nothing, effects far outside, a single part.
  input = {.charts = {{.curves = {{.name = "a", .kept = {0, 1, 2}, .effect = {0, -7, 0.3}},
                                  {.name = "b", .kept = {0, 1}, .effect = {1, 9}, .size = 0}}}}};
  draw(make_figure(input, dark_theme()));
}

TEST(CircuitCurves, SaysHowSizesCompare) {
  EXPECT_EQ(size_ratio(61, 9), "6.8 × fewer");
  EXPECT_EQ(size_ratio(4110, 96), "43 × fewer");
  EXPECT_EQ(size_ratio(10, 15), "1.5 × more");
  EXPECT_EQ(size_ratio(10, 10), "as many");
}

TEST(CircuitGraph, OddInput) {
  EXPECT_THAT(error_of([] { make_figure(CircuitDrawing{}, light_theme()); }),
              HasSubstr("no panel"));
  CircuitDrawing input = {.panels = {{"GPT-2", {}}}};
  EXPECT_THAT(error_of([&] { make_figure(input, light_theme()); }),
              AllOf(HasSubstr("'GPT-2'"), HasSubstr("no nodes")));
  // Nodes without edges; edges that all have the score 0; rows of 40 heads.
  input.panels[0].graph.nodes = {{ComponentKind::kHead, 3, 1}};
  draw(make_figure(input, light_theme()));
  input.panels[0].graph = samples::sample_graph(3, 40, 150, 2);
  for (GraphEdge& edge : input.panels[0].graph.edges) edge.score = 0;
  draw(make_figure(input, dark_theme()));
}

// Nodes do not overlap and stay on the page, lines rise and keep clear of nodes.
TEST(TokenCircuit, OddInput) {
  const auto error = [](const TokenCircuit& input) {
    return error_of([&] { make_figure(input, light_theme()); });
  };
  EXPECT_THAT(error({}), HasSubstr("no panel"));
  TokenCircuit input = {.tokens = {"a", "b"}, .layers = 2, .panels = {{.title = "GPT-2"}}};
  draw(make_figure(input, light_theme()));  // without an edge
  input.panels[0].edges = {{{1, 5}, 0, 1, 0.5}};
  EXPECT_THAT(error(input), AllOf(HasSubstr("'GPT-2'"), HasSubstr("L1H5"), HasSubstr("token 1")));
  input.panels[0].edges = {{{2, 0}, 1, 0, 0.5}};
  EXPECT_THAT(error(input), AllOf(HasSubstr("L2H0"), HasSubstr("2 layers")));
  input.panels[0].edges = {{{1, 0}, 1, 0, std::numeric_limits<double>::infinity()}};
  EXPECT_THAT(error(input), HasSubstr("inf"));
  input.panels[0].edges.clear();
  input.panels[0].mlps = {{0, 2, 1.0}};
  EXPECT_THAT(error(input), HasSubstr("token 2"));
  input.panels[0].mlps.clear();
  input.roles = {"IO"};
  EXPECT_THAT(error(input), HasSubstr("1 roles for 2 tokens"));
  // Scores of zero, one token, very many tokens and layers, three panels.
  input = {.tokens = {"a"}, .layers = 1, .panels = {{.edges = {{{0, 0}, 0, 0, 0.0}}}}};
  draw(make_figure(input, dark_theme()));
  input.tokens = samples::numbered_tokens(700);
  input.roles.assign(700, "");
  input.roles[699] = "END";
  input.layers = 96;
  input.panels.resize(3);
  input.panels[2].edges = {{{95, 3}, 699, 0, -1.0}, {{0, 3}, 650, 650, 1.0}};
  const Picture picture = draw(make_figure(input, print_theme()));
  EXPECT_LT(picture.width, 2400);
}

TEST(TokenArcs, OddInput) {
  const auto error = [](const TokenArcs& input) {
    return error_of([&] { make_figure(input, light_theme()); });
  };
  EXPECT_THAT(error({}), HasSubstr("no sentence"));
  EXPECT_THAT(error({.sentences = {{}}}), HasSubstr("no tokens"));
  ArcSentence sentence = {.tokens = {"a", "b"}, .above = {.name = "GPT-2"}};
  draw(make_figure(TokenArcs{.sentences = {sentence}}, light_theme()));  // without an arc
  sentence.above.arcs = {{0, 1, 0.5}};
  EXPECT_THAT(error({.sentences = {sentence}}), AllOf(HasSubstr("'GPT-2'"), HasSubstr("token 1")));
  for (const double weight : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN()}) {
    sentence.above.arcs = {{1, 0, weight}};
    EXPECT_THAT(error({.sentences = {sentence}}), HasSubstr("between 0 and 1")) << weight;
  }
  sentence.above.arcs = {{1, 0, 1.0}, {1, 1, 0.0}};
  sentence.chosen = 2;
  EXPECT_THAT(error({.sentences = {sentence}}), HasSubstr("token 2 of 2 is chosen"));
  // Very many tokens and arcs, of which the strongest are drawn.
  sentence = {.tokens = samples::numbered_tokens(300)};
  for (std::size_t i = 0; i < 300; ++i)
    for (std::size_t j = 0; j <= i; ++j)
      sentence.above.arcs.push_back({i, j, static_cast<double>(i + j) / 600});
  sentence.below = sentence.above;
  const Picture picture =
      draw(make_figure(TokenArcs{.sentences = {sentence, sentence}}, dark_theme()));
  EXPECT_GT(picture.width, picture.height);
}

TEST(LabelledMaps, OddInput) {
  EXPECT_THAT(error_of([] { make_figure(LabelledMaps{}, light_theme()); }), HasSubstr("no panel"));
  LabelledMaps input = samples::head_map();
  input.panels[1].values.pop_back();
  EXPECT_THAT(error_of([&] { make_figure(input, light_theme()); }),
              AllOf(HasSubstr("'Sparse GPT-2'"), HasSubstr("155 values")));
  input = samples::head_map();
  input.panels[0].columns.groups[1].count = 2;
  EXPECT_THAT(error_of([&] { make_figure(input, light_theme()); }), HasSubstr("14 cells"));
  input = samples::head_map();
  input.kind = ScaleKind::kMagnitude;
  EXPECT_THAT(error_of([&] { make_figure(input, light_theme()); }), HasSubstr("scale from 0"));
  input = samples::lens_map();
  input.panels[0].words.pop_back();
  EXPECT_THAT(error_of([&] { make_figure(input, light_theme()); }), HasSubstr("words"));
  input = samples::head_map();
  input.panels[0].values[5] = std::numeric_limits<float>::infinity();
  EXPECT_THAT(error_of([&] { make_figure(input, light_theme()); }), HasSubstr("'0', '5'"));
  // All zero, one cell, undefined cells, a prompt of 100 tokens.
  input = {.panels = {{.rows = {.labels = {"0"}}, .columns = {.labels = {"0"}}, .values = {0}}}};
  draw(make_figure(input, light_theme()));
  input.panels[0].values[0] = kNan;
  draw(make_figure(input, dark_theme()));
  input.panels[0].columns.labels = samples::numbered_tokens(100);
  input.panels[0].values.assign(100, 0.5f);
  input.panels[0].words.assign(100, " word");
  draw(make_figure(input, print_theme()));
}

TEST(Theme, UnknownNamesListTheKnown) {
  EXPECT_EQ(theme_named("dark").name, "dark");
  EXPECT_THAT(error_of([] { theme_named("drak"); }),
              AllOf(HasSubstr("'drak'"), HasSubstr("light, dark, print")));
}

}  // namespace
}  // namespace filigree::figure
