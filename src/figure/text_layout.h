// A laid-out piece of text (internal to text.cpp and canvas.cpp).
#pragma once

#include "figure/fonts.h"
#include "figure/text.h"

namespace filigree::figure {

// `text` passes through visible_text() first.
ObjectPtr<PangoLayout> make_layout(std::string_view text, const TextStyle& style);

}  // namespace filigree::figure
