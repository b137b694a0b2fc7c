// The parts of a PNG file that Cairo does not write.
#pragma once

#include <string>
#include <string_view>

#include "filigree/figures.h"

namespace filigree::figure {

// A chunk with its length and checksum; `type` has four letters.
std::string png_chunk(std::string_view type, std::string_view data);

// A heat map with one byte a pixel and a palette: less than half of what Cairo's three bytes take.
std::string indexed_png(const LevelMap& map, const LevelColors& colors);

// Puts the resolution into a PNG: the chunk pHYs, right after the header.
void insert_resolution(std::string& png, double dpi);

}  // namespace filigree::figure
