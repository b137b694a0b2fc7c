// The fonts of all figures, the same on every machine.
//
// Text is laid out by Pango with a private font configuration: fixed files of Debian packages
// (tools/packages.txt), no user settings, no other installed fonts. Latin, Greek and Cyrillic are
// Noto Sans; other scripts come from its sister fonts and, for Chinese, Japanese and Korean, from
// WenQuanYi Micro Hei. Glyphs are not hinted and advances not rounded, so that a picture has the
// same layout in every format and at every resolution.
#pragma once

#include <pango/pangocairo.h>

#include <memory>
#include <string_view>

namespace filigree::figure {

struct ObjectDeleter {
  void operator()(void* object) const { g_object_unref(object); }
};
template <typename T>
using ObjectPtr = std::unique_ptr<T, ObjectDeleter>;

// A context whose fonts can draw `text`, for this thread only. The fonts of other scripts are
// opened when the first text needs them (about 50 ms). Where the main font is not installed, the
// system's fonts are used and a warning names the package.
PangoContext* text_context(std::string_view text);

inline constexpr const char* kFontFamily = "Noto Sans";

}  // namespace filigree::figure
