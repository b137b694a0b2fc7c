// Text on a page: styles, measuring, and making any bytes fit to be seen.
#pragma once

#include <string>
#include <string_view>

#include "filigree/figures.h"

namespace filigree::figure {

enum class Align { kLeft, kCenter, kRight };
// kMiddle centres the capitals and digits, whatever descends below them.
enum class VerticalAlign { kTop, kMiddle, kBaseline, kBottom };

struct TextStyle {
  double size = 7;  // points
  Color color = {};
  bool bold = false;
  bool italic = false;
  Align align = Align::kLeft;
  VerticalAlign vertical = VerticalAlign::kBaseline;
  double angle = 0;      // degrees, counter-clockwise, around the anchor
  double max_width = 0;  // longer text ends in an ellipsis; 0: no limit
  int max_lines = 1;     // with max_width: wrapped at words into at most as many lines
};

// What `text` takes on the page before it is turned.
Size text_size(std::string_view text, const TextStyle& style);

// The height of one line of a size, the same for every text.
double line_height(double size);

// Where a capital's top lies above the baseline.
double cap_height(double size);

// `text` as it can be drawn: bytes that are not UTF-8 as \xNN; line breaks, tabs, other control
// characters as their symbols; characters that have no width or change the direction of others as
// <U+200B>.
std::string visible_text(std::string_view text);

// The same for a token: spaces are open boxes too, so that " the" and "the" are told apart, and a
// lone combining mark gets the dotted circle to stand on. An empty token is the empty-set sign.
std::string visible_token(std::string_view token);

}  // namespace filigree::figure
