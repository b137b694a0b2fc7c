// Where figures put things, and how large.
#include <gtest/gtest.h>

#include <set>

#include "figure/graph_layout.h"
#include "support/drawn_figures.h"
#include "support/figure_samples.h"

namespace filigree::figure {
namespace {

TEST(TokenArcs, AreHigherForTokensFartherApartAndThickerForMore) {
  const auto dark_pixels = [](const std::vector<TokenArc>& arcs) {
    const ArcSentence sentence = {.tokens = samples::numbered_tokens(12), .above = {.arcs = arcs}};
    const Picture picture = draw(make_figure(TokenArcs{.sentences = {sentence}}, print_theme()));
    int count = 0;
    for (const std::uint32_t pixel : picture.pixels) count += difference(pixel, 0xFFFFFF) > 20;
    return std::pair(picture.height, count);
  };
  const auto [near_height, near] = dark_pixels({{1, 0, 0.2}});
  const auto [far_height, far] = dark_pixels({{11, 0, 0.2}});
  const auto [same_height, thick] = dark_pixels({{11, 0, 1.0}});
  EXPECT_GT(far_height, near_height);
  EXPECT_EQ(same_height, far_height);
  EXPECT_GT(thick, far);
}

TEST(CarriedPair, ThreeMapsStandInOneRow) {
  const auto picture = [](std::size_t map, float weight) {
    CarriedPanel panel = {.title = "panel"};
    for (std::int64_t h = 0; h < 3; ++h)
      panel.maps.push_back({.head = {0, h}, .weights = {0, 0, 0, 0}, .share = 0.3});
    panel.maps[map].weights[2] = weight;
    return draw(make_figure(CarriedPairFigure{.title = "title",
                                              .tokens = samples::numbered_tokens(2),
                                              .key = 0,
                                              .query = 1,
                                              .panels = {panel}},
                            light_theme()));
  };
  // The rows of pixels that the weight of one map changes.
  const auto rows = [&](std::size_t map) {
    const Picture without = picture(map, 0), with = picture(map, 1);
    std::set<std::size_t> changed;
    for (std::size_t i = 0; i < with.pixels.size(); ++i)
      if (with.pixels[i] != without.pixels[i])
        changed.insert(i / static_cast<std::size_t>(with.width));
    return changed;
  };
  EXPECT_FALSE(rows(0).empty());
  EXPECT_EQ(rows(0), rows(1));
  EXPECT_EQ(rows(0), rows(2));
}

TEST(TokenCircuit, EdgesOfOneLayerBetweenTheSameTokensShareALine) {
  const std::vector<TokenLine> lines = token_lines({{{3, 7}, 5, 2, 0.5},
                                                    {{3, 1}, 5, 2, -2.0},
                                                    {{4, 7}, 5, 2, 1.0},
                                                    {{3, 7}, 5, 1, 0.25},
                                                    {{3, 0}, 5, 2, 0.75}});
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(name_of(lines[0]), "L3H1,0,7");
  EXPECT_EQ(name_of(lines[1]), "L4H7");
  EXPECT_EQ(name_of({.layer = 3, .heads = {5, 1, 2, 0}}), "L3 \u00D74");
  EXPECT_EQ(name_with_attention(lines[1]), "L4H7");  // not known
  EXPECT_EQ(name_with_attention({.layer = 3, .heads = {5, 1}, .attention = {0.926, 1}}),
            "L3H5,1 0.93,1");
  EXPECT_EQ(name_with_attention({.layer = 3, .heads = {5, 1, 2}, .attention = {0, 0.1, 0.004}}),
            "L3H5,1,2 0,0.1,0");
  const std::vector<TokenLine> known =
      token_lines({{{3, 7}, 5, 2, 0.5, 0.1}, {{3, 1}, 5, 2, -2.0, 0.9}, {{4, 1}, 5, 2, 0.1}});
  EXPECT_EQ(known[0].attention, (std::vector<double>{0.9, 0.1}));
  EXPECT_TRUE(known[1].attention.empty());
  EXPECT_EQ(lines[0].layer, 3u);
  EXPECT_EQ(lines[0].key, 2u);
  EXPECT_EQ(lines[0].heads, (std::vector<std::int64_t>{1, 0, 7}));
  EXPECT_DOUBLE_EQ(lines[0].weight, 3.25);
  EXPECT_DOUBLE_EQ(lines[0].score, -0.75);
  EXPECT_EQ(lines[1].layer, 4u);
  EXPECT_DOUBLE_EQ(lines[2].weight, 0.25);
  std::size_t edges = 0;
  for (const TokenLine& line : token_lines(samples::tokens_circuit(10000, -1).panels[0].edges))
    edges += line.heads.size();
  EXPECT_EQ(edges, 10011u);  // none is lost
}

// The strong line covers more of the page than the weak one, in its own colour.
TEST(TokenCircuit, WidthsAreTheRootOfTheScore) {
  const auto ink = [](double score) {
    TokenCircuit input = {.tokens = {"a", "b", "c", "d"}, .layers = 1, .panels = {{}}};
    input.panels[0].edges = {{{0, 0}, 1, 0, 16.0}, {{0, 0}, 3, 2, score}};
    const Picture picture = draw(make_figure(input, light_theme()));
    const auto count = [&](int from, int to) {
      int dark = 0;
      for (int y = 90; y < 140; ++y)
        for (int x = from; x < to; ++x) {
          const std::uint32_t pixel =
              picture.pixels[static_cast<std::size_t>(y * picture.width + x)];
          dark += ((pixel >> 16) & 255) > (pixel & 255) + 60;  // orange
        }
      return dark;
    };
    return std::pair(count(0, picture.width / 2), count(picture.width / 2, picture.width));
  };
  const auto [strong, equal] = ink(16);
  const auto [same, weak] = ink(1);
  EXPECT_GT(strong, 40);
  EXPECT_NEAR(strong, equal, 0.2 * strong);
  EXPECT_EQ(strong, same);  // whatever the other is
  EXPECT_LT(weak, 0.6 * equal);
  EXPECT_GT(weak, 0);
}

TEST(GraphLayout, PutsLayersOfGraphsSideBySideAtOneHeight) {
  const CircuitGraph full = samples::sample_graph(8, 40, 200, 4);
  CircuitGraph few;  // no input, no logits, no MLP
  few.nodes = {{ComponentKind::kHead, 2, 0}, {ComponentKind::kHead, 5, 1}};
  few.edges = {{0, 1, GraphInput::kKey, 1.0}};
  const LayoutOptions options = {.width = 400, .beside = {&full, &few}};
  const GraphLayout one = layout_graph(full, options), other = layout_graph(few, options);
  EXPECT_DOUBLE_EQ(one.size.height, other.size.height);
  ASSERT_EQ(one.layers.size(), other.layers.size());
  for (std::size_t i = 0; i < one.layers.size(); ++i) {
    EXPECT_EQ(one.layers[i].layer, other.layers[i].layer);
    EXPECT_DOUBLE_EQ(one.layers[i].y, other.layers[i].y);
  }
  EXPECT_DOUBLE_EQ(other.nodes[1].center().y, other.layers[5].y);
}

// More than a row takes, beside a graph that has none.
TEST(GraphLayout, PutsExpertsInRowsAboveTheHeadsOfTheirLayer) {
  CircuitGraph graph, few;
  few.nodes = {{ComponentKind::kHead, 0, 0}, {ComponentKind::kHead, 1, 1}};
  for (std::int64_t layer = 0; layer < 2; ++layer) {
    for (std::int64_t h = 0; h < 3; ++h) graph.nodes.push_back({ComponentKind::kHead, layer, h});
    for (std::int64_t e = 0; e < 30; ++e)
      graph.nodes.push_back({.kind = ComponentKind::kExpert, .layer = layer, .expert = e});
  }
  for (std::size_t e = 3; e < 33; ++e) graph.edges.push_back({0, e, GraphInput::kNone, 1.0});
  check_graph(graph);
  const LayoutOptions options = {.width = 400, .beside = {&graph, &few}};
  const GraphLayout layout = layout_graph(graph, options), other = layout_graph(few, options);
  EXPECT_DOUBLE_EQ(layout.size.height, other.size.height);
  EXPECT_DOUBLE_EQ(layout.nodes[34].center().y, other.nodes[1].center().y);
  const Rect page = {0, 0, layout.size.width, layout.size.height};
  for (std::size_t i = 0; i < layout.nodes.size(); ++i) {
    EXPECT_TRUE(page.contains(layout.nodes[i])) << name_of(graph.nodes[i]);
    for (std::size_t j = 0; j < i; ++j)
      EXPECT_FALSE(layout.nodes[i].overlaps(layout.nodes[j]))
          << name_of(graph.nodes[i]) << " " << name_of(graph.nodes[j]);
  }
  for (std::size_t e = 3; e < 33; ++e) {
    EXPECT_LT(layout.nodes[e].bottom(), layout.nodes[0].y);   // up the page, behind the heads
    EXPECT_GT(layout.nodes[e].y, layout.nodes[33].bottom());  // and before the next layer
  }
}

TEST(GraphLayout, KeepsThingsApart) {
  for (const int edges : {10, 60, 200}) {
    for (const int heads : {3, 12, 40}) {
      SCOPED_TRACE(fmt::format("{} edges, {} heads", edges, heads));
      const CircuitGraph graph = samples::sample_graph(8, heads, edges, 4);
      const GraphLayout layout = layout_graph(graph, {.width = 500});
      const Rect page = {0, 0, layout.size.width, layout.size.height};
      for (std::size_t i = 0; i < layout.nodes.size(); ++i) {
        EXPECT_TRUE(page.contains(layout.nodes[i])) << name_of(graph.nodes[i]);
        for (std::size_t j = 0; j < i; ++j) {
          EXPECT_FALSE(layout.nodes[i].overlaps(layout.nodes[j]))
              << name_of(graph.nodes[i]) << " " << name_of(graph.nodes[j]);
        }
      }
      int hits = 0, points = 0;
      for (std::size_t e = 0; e < layout.edges.size(); ++e) {
        const std::vector<Point>& line = layout.edges[e];
        for (std::size_t p = 0; p < line.size(); ++p) {
          if (p > 0) {
            EXPECT_LT(line[p].y, line[p - 1].y);
          }
          ++points;
          for (std::size_t i = 0; i < layout.nodes.size(); ++i)
            hits += i != graph.edges[e].from && i != graph.edges[e].to &&
                    layout.nodes[i].contains(line[p]);
        }
      }
      EXPECT_LE(hits, points / 100);  // the bends beside a corner
    }
  }
}

}  // namespace
}  // namespace filigree::figure
