// Figures drawn for a test.
#pragma once

#include <gtest/gtest.h>

#include "filigree/figures.h"
#include "support/pictures.h"

namespace filigree::figure {

// Draws in every format; returns the picture.
inline Picture draw(const Figure& figure) {
  EXPECT_FALSE(render(figure, Format::kSvg).empty());
  EXPECT_FALSE(render(figure, Format::kPdf).empty());
  return decode_png(render(figure, Format::kPng, {.dpi = 100}));
}

}  // namespace filigree::figure
