// Figures as files. The ending of the name chooses the format:
//   .svg   vector; text as outlines, so that it looks the same without the fonts
//   .pdf   vector; text with embedded fonts, searchable
//   .png   pixels, with the resolution written into the file
// Heat maps are pictures inside the vector formats. Nothing in a file depends on the time or the
// machine: the same figure gives the same bytes.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/names.h"
#include "figure/figure.h"

namespace filigree::figure {

enum class Format { kSvg, kPdf, kPng };

}  // namespace filigree::figure

namespace filigree {

// As endings of files.
template <>
inline constexpr auto kNames<figure::Format> = std::to_array<Named<figure::Format>>(
    {{figure::Format::kSvg, "svg"}, {figure::Format::kPdf, "pdf"}, {figure::Format::kPng, "png"}});

}  // namespace filigree

namespace filigree::figure {

struct SaveOptions {
  double dpi = 200;          // of a PNG
  double heatmap_dpi = 300;  // of heat maps inside SVG and PDF
};

// By the ending, in either case; nothing for any other.
inline std::optional<Format> find_format(const std::filesystem::path& path) {
  std::string ending = path.extension().string();
  for (char& c : ending)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return ending.empty() ? std::nullopt : find_name<Format>(ending.substr(1));
}
// The same; throws Error that lists the formats.
Format format_of(const std::filesystem::path& path);

// The bytes of the file.
std::string render(const Figure& figure, Format format, const SaveOptions& options = {});

// Replaces the file as a whole or not at all. Errors name the path.
void save(const Figure& figure, const std::filesystem::path& path, const SaveOptions& options = {});

}  // namespace filigree::figure
