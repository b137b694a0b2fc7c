// The colours of all that is drawn, by what they stand for. Figures (filigree/figures.h), the page
// (filigree/report.h) and circuits for Graphviz take them from here and have none of their own.
//
// Categories use the palette of Okabe and Ito, ordered so that neighbours differ in lightness too;
// dense and sparse are always its first two. Magnitudes use one hue whose lightness grows or falls
// steadily, so that they survive a grey printer and every form of colour blindness; differences use
// blue against orange.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "filigree/names.h"

namespace filigree {

using Rgb = std::uint32_t;  // 0xRRGGBB

struct Palette {
  Rgb page;          // behind everything
  Rgb panel;         // inside the rounded panels
  Rgb panel_border;  // around them
  Rgb plot;          // behind curves, bars and points
  Rgb text;
  Rgb muted;  // secondary text, axes
  Rgb grid;   // grid lines
  Rgb frame;  // around one heat map

  // Heat maps: `empty` is exact zero and everything above the diagonal. The ramps are paths through
  // colours at equal distances. That of magnitudes starts at the smallest value that is not zero,
  // visibly not `empty`; those of differences and correlations start at `empty` itself, which comes
  // before their first colour.
  Rgb empty;
  std::array<Rgb, 6> magnitude;
  std::array<Rgb, 5> negative, positive;  // from small to large
  Rgb undefined;                          // a correlation that does not exist

  std::array<Rgb, 15> categories;  // seven of Tol's after the eight
};

// Screens and slides.
inline constexpr Palette kLightPalette = {
    .page = 0xFFFFFF,
    .panel = 0xF7F9FC,
    .panel_border = 0x9DB3CC,
    .plot = 0xFFFFFF,
    .text = 0x1B2A41,
    .muted = 0x5B6B80,
    .grid = 0xE3E8EF,
    .frame = 0xB9C7D9,
    .empty = 0xFFFFFF,
    .magnitude = {0xE6EFF8, 0xB9D5EC, 0x7DB2DD, 0x4187C7, 0x1A5AA5, 0x08306B},
    .negative = {0xE4EEF7, 0xA5CAE4, 0x4C97C8, 0x1A5F9E, 0x083A73},
    .positive = {0xFCECDD, 0xFAC08F, 0xEE8A3C, 0xC4570C, 0x7F2F04},
    .undefined = 0xD5D8DC,
    .categories = {0xD55E00, 0x0072B2, 0x009E73, 0xCC79A7, 0xE69F00, 0x56B4E9, 0x882255, 0x999933,
                   0xB8B8B8, 0x332288, 0xDDCC77, 0x44AA99, 0x117733, 0xAA4499, 0x4D4D4D}};

inline constexpr Palette kDarkPalette = {
    .page = 0x10151D,
    .panel = 0x161D27,
    .panel_border = 0x3C4C61,
    .plot = 0x161D27,
    .text = 0xE8EDF4,
    .muted = 0x9AA8BA,
    .grid = 0x2A3442,
    .frame = 0x3F4E63,
    .empty = 0x0B0F15,
    .magnitude = {0x172C47, 0x1C4A7D, 0x2B74B8, 0x5BA4E0, 0xA3D0F3, 0xF2F9FF},
    .negative = {0x16304D, 0x1F5A93, 0x4A94D2, 0x9ACBF0, 0xE6F4FF},
    .positive = {0x41270F, 0x8A480F, 0xD9772A, 0xF7B57C, 0xFFEFDF},
    .undefined = 0x454C55,
    .categories = {0xF0853A, 0x56B4E9, 0x2FC49A, 0xE3A0C8, 0xF0E442, 0x3D7FD9, 0xC25A8C, 0xB5B556,
                   0x6B7280, 0x8F7FE0, 0xEADB8C, 0x6CCFBE, 0x4FB36B, 0xD07FC5, 0xD5D9DF}};

// Papers: the light one with nothing tinted behind the data, black text and greys.
Palette print_palette();

// `part` of the way from `a` to `b`, in sRGB.
Rgb mixed(Rgb a, Rgb b, double part);

// "#D55E00".
std::string hex_text(Rgb color);

// In drawings of circuits: edges by what of a head they go into, and the inside of nodes.
Rgb edge_color(const Palette& palette, GraphInput input);
Rgb node_color(const Palette& palette, ComponentKind kind);

}  // namespace filigree
