// Figures as files. The ending of the name chooses the format:
//   .svg   vector; text as outlines, so that it looks the same without the fonts
//   .pdf   vector; text with embedded fonts, searchable
//   .png   pixels, with the resolution written into the file
// Heat maps are pictures inside the vector formats. Nothing in a file depends on the time or the
// machine: the same figure gives the same bytes.
#pragma once

#include <filesystem>
#include <string>

#include "filigree/figure/figure.h"

namespace filigree::figure {

enum class Format { kSvg, kPdf, kPng };

struct SaveOptions {
  double dpi = 200;          // of a PNG
  double heatmap_dpi = 300;  // of heat maps inside SVG and PDF
};

// By the ending, in either case; throws Error that lists the formats for any other.
Format format_of(const std::filesystem::path& path);

// The bytes of the file.
std::string render(const Figure& figure, Format format, const SaveOptions& options = {});

// Replaces the file as a whole or not at all. Errors name the path.
void save(const Figure& figure, const std::filesystem::path& path, const SaveOptions& options = {});

}  // namespace filigree::figure
