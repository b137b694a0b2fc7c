// A laid-out piece of text (internal to text.cpp and canvas.cpp).
#pragma once

#include "filigree/figure/fonts.h"
#include "filigree/figure/text.h"

namespace filigree::figure {

// `text` passes through visible_text() first.
ObjectPtr<PangoLayout> make_layout(std::string_view text, const TextStyle& style);

}  // namespace filigree::figure
