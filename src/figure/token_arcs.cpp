#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "figure/page.h"
#include "filigree/error.h"
#include "filigree/figures.h"
#include "filigree/names.h"

namespace filigree::figure {
namespace {

constexpr double kArcLeastWidth = 300;
constexpr double kTokenGap = 5, kLine = 13, kSentenceGap = 12, kArcNameHeight = 11;
constexpr double kLeastRise = 6, kRise = 0.24, kHighest = 96;  // of an arc, by its distance
constexpr double kArcThinnest = 0.4, kArcThickest = 2.2;
constexpr double kLongestToken = 120;

struct Sentence {
  ArcSentence input = {};
  std::vector<double> middles = {};  // x of each token
  double width = 0;
  double up = 0, down = 0;  // heights of the sides

  double height() const {
    return kArcNameHeight + up + kLine + down + (input.below ? kArcNameHeight : 0);
  }
};

TextStyle token_style(const Theme& theme, bool bold) {
  return {.size = theme.text_size + 1,
          .color = theme.text,
          .bold = bold,
          .align = Align::kCenter,
          .vertical = VerticalAlign::kMiddle,
          .max_width = kLongestToken};
}

double rise_of(const std::vector<double>& middles, const TokenArc& arc) {
  return std::min(kHighest, kLeastRise + kRise * (middles[arc.query] - middles[arc.key]));
}

void check_side(const ArcSide& side, std::size_t tokens) {
  for (const TokenArc& arc : side.arcs) {
    require(arc.query < tokens && arc.key <= arc.query,
            "token arcs: '{}': an arc runs from token {} to token {} of {}", printable(side.name),
            arc.key, arc.query, tokens);
    require(arc.weight >= 0 && arc.weight <= 1,
            "token arcs: '{}': the arc from token {} to token {} has the weight {}, should be "
            "between 0 and 1",
            printable(side.name), arc.key, arc.query, arc.weight);
  }
}

// The strongest, these last, so that they lie on top.
std::vector<TokenArc> drawn_arcs(std::vector<TokenArc> arcs) {
  std::stable_sort(arcs.begin(), arcs.end(),
                   [](const TokenArc& a, const TokenArc& b) { return a.weight < b.weight; });
  if (arcs.size() > kMostArcs) arcs.erase(arcs.begin(), arcs.end() - kMostArcs);
  return arcs;
}

bool is_bold(const ArcSentence& sentence, std::size_t token) {
  return sentence.chosen == token || (sentence.fresh && token >= *sentence.fresh);
}

Sentence prepared(const ArcSentence& input, const Theme& theme) {
  require(!input.tokens.empty(), "token arcs: a sentence has no tokens");
  check_side(input.above, input.tokens.size());
  if (input.below) check_side(*input.below, input.tokens.size());
  require(!input.chosen || *input.chosen < input.tokens.size(),
          "token arcs: token {} of {} is chosen", input.chosen.value_or(0), input.tokens.size());
  Sentence sentence = {.input = input};
  sentence.input.above.arcs = drawn_arcs(input.above.arcs);
  if (input.below) sentence.input.below->arcs = drawn_arcs(input.below->arcs);
  for (std::size_t t = 0; t < input.tokens.size(); ++t) {
    const double width = std::max(
        4.0,
        text_size(visible_token(input.tokens[t]), token_style(theme, is_bold(input, t))).width);
    sentence.middles.push_back(sentence.width + width / 2);
    sentence.width += width + kTokenGap;
  }
  const auto highest = [&](const ArcSide& side) {
    double height = kLeastRise;
    for (const TokenArc& arc : side.arcs) height = std::max(height, rise_of(sentence.middles, arc));
    return height + 2;
  };
  sentence.up = highest(input.above);
  sentence.down = input.below ? highest(*input.below) : 0;
  return sentence;
}

// `up` is -1 above the line and 1 below it; `y` the line's edge.
void draw_side(Canvas& canvas, const Sentence& sentence, const ArcSide& side, double x, double y,
               double up, const Theme& theme) {
  const Color& color = theme.category(side.color);
  for (const TokenArc& arc : side.arcs) {
    const double from = x + sentence.middles[arc.key], to = x + sentence.middles[arc.query];
    Stroke stroke = {color.with_alpha(0.3 + 0.7 * arc.weight),
                     kArcThinnest + (kArcThickest - kArcThinnest) * arc.weight};
    if (sentence.input.chosen && arc.query != *sentence.input.chosen) stroke.dashes = {3, 2};
    if (arc.query == arc.key) {  // a loop on the token
      const double bend = y + up * kLeastRise * 1.4;
      canvas.curve(
          std::array<Point, 4>{Point{to - 2.5, y}, {to - 6, bend}, {to + 6, bend}, {to + 2.5, y}},
          stroke);
      continue;
    }
    // The middle of such a curve lies at three quarters of its handles' height.
    const double bend = y + up * rise_of(sentence.middles, arc) * 4 / 3;
    canvas.curve(std::array<Point, 4>{Point{from, y}, {from, bend}, {to, bend}, {to, y}}, stroke);
  }
}

void draw_sentence(Canvas& canvas, const Sentence& sentence, Point corner, const Theme& theme) {
  const auto name = [&](const ArcSide& side, double y) {
    canvas.text({corner.x, y}, side.name,
                {.size = theme.text_size,
                 .color = theme.category(side.color),
                 .bold = true,
                 .vertical = VerticalAlign::kTop});
  };
  name(sentence.input.above, corner.y);
  const double line = corner.y + kArcNameHeight + sentence.up;
  draw_side(canvas, sentence, sentence.input.above, corner.x, line, -1, theme);
  if (sentence.input.below) {
    draw_side(canvas, sentence, *sentence.input.below, corner.x, line + kLine, 1, theme);
    name(*sentence.input.below, line + kLine + sentence.down);
  }
  for (std::size_t t = 0; t < sentence.middles.size(); ++t)
    canvas.text({corner.x + sentence.middles[t], line + kLine / 2},
                visible_token(sentence.input.tokens[t]),
                token_style(theme, is_bold(sentence.input, t)));
}

}  // namespace

Figure make_figure(const TokenArcs& input, const Theme& theme) {
  require(!input.sentences.empty(), "token arcs: there is no sentence to draw");
  const auto sentences = std::make_shared<std::vector<Sentence>>();
  Size size = {kArcLeastWidth, -kSentenceGap};
  for (const ArcSentence& sentence : input.sentences) {
    sentences->push_back(prepared(sentence, theme));
    size.width = std::max(size.width, sentences->back().width);
    size.height += sentences->back().height() + kSentenceGap;
  }
  PageParts parts = {.title = input.title};
  if (!input.caption.empty()) parts.captions = {input.caption};
  return make_page(parts, size, theme, [sentences, theme](Canvas& canvas, const Rect& body) {
    double y = body.y;
    for (const Sentence& sentence : *sentences) {
      draw_sentence(canvas, sentence, {body.x, y}, theme);
      y += sentence.height() + kSentenceGap;
    }
  });
}

}  // namespace filigree::figure
