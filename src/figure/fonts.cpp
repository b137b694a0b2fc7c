#include "figure/fonts.h"

#include <fontconfig/fontconfig.h>
#include <pango/pangofc-fontmap.h>

#include <filesystem>
#include <initializer_list>
#include <string>

#include "base/file_status.h"
#include "filigree/error.h"

namespace filigree::figure {

namespace {

constexpr const char* kNotoFolder = "/usr/share/fonts/truetype/noto/";
// The last has the minus sign, which the others lack.
constexpr const char* kMainFonts[] = {"NotoSans-Regular.ttf", "NotoSans-Bold.ttf",
                                      "NotoSans-Italic.ttf", "NotoSansMath-Regular.ttf"};
// Symbols first: they are what stands for control characters.
constexpr const char* kOtherScripts[] = {
    "NotoSansSymbols-Regular.ttf",   "NotoSansSymbols2-Regular.ttf",
    "NotoSansArabic-Regular.ttf",    "NotoSansArmenian-Regular.ttf",
    "NotoSansBengali-Regular.ttf",   "NotoSansDevanagari-Regular.ttf",
    "NotoSansEthiopic-Regular.ttf",  "NotoSansGeorgian-Regular.ttf",
    "NotoSansGujarati-Regular.ttf",  "NotoSansGurmukhi-Regular.ttf",
    "NotoSansHebrew-Regular.ttf",    "NotoSansKannada-Regular.ttf",
    "NotoSansKhmer-Regular.ttf",     "NotoSansLao-Regular.ttf",
    "NotoSansMalayalam-Regular.ttf", "NotoSansMyanmar-Regular.ttf",
    "NotoSansOriya-Regular.ttf",     "NotoSansSinhala-Regular.ttf",
    "NotoSansTamil-Regular.ttf",     "NotoSansTelugu-Regular.ttf",
    "NotoSansThai-Regular.ttf"};
constexpr const char* kChineseJapaneseKorean = "/usr/share/fonts/truetype/wqy/wqy-microhei.ttc";

struct FontConfigDeleter {
  void operator()(FcConfig* config) const { FcConfigDestroy(config); }
};
using FontConfigPtr = std::unique_ptr<FcConfig, FontConfigDeleter>;

// False when the file is not there.
bool add_font(FcConfig* config, const std::string& path) {
  return is_there(path) &&
         FcConfigAppFontAddFile(config, reinterpret_cast<const FcChar8*>(path.c_str())) == FcTrue;
}

// Fonts with a context over them.
class FontSet {
 public:
  explicit FontSet(bool all_scripts) {
    map_.reset(pango_cairo_font_map_new_for_font_type(CAIRO_FONT_TYPE_FT));
    FontConfigPtr config(FcConfigCreate());
    bool complete = true;
    for (const char* file : kMainFonts)
      complete = add_font(config.get(), std::string(kNotoFolder) + file) && complete;
    if (complete) {
      if (all_scripts) {
        for (const char* file : kOtherScripts)
          add_font(config.get(), std::string(kNotoFolder) + file);
        add_font(config.get(), kChineseJapaneseKorean);
      }
      pango_fc_font_map_set_config(PANGO_FC_FONT_MAP(map_.get()), config.get());
    } else {
      warn(
          "figure: the font {} is not in {}: text may look different (Debian package "
          "fonts-noto-core)",
          kFontFamily, kNotoFolder);
    }
    context_.reset(pango_font_map_create_context(map_.get()));
    cairo_font_options_t* options = cairo_font_options_create();
    cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
    cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
    cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
    pango_cairo_context_set_font_options(context_.get(), options);
    cairo_font_options_destroy(options);
    pango_cairo_context_set_resolution(context_.get(), 72);  // sizes in points of the page
    pango_context_set_round_glyph_positions(context_.get(), FALSE);
    // Neither depends on the user's locale.
    pango_context_set_language(context_.get(), pango_language_from_string("en"));
    pango_context_set_base_dir(context_.get(), PANGO_DIRECTION_LTR);
  }

  PangoContext* context() const { return context_.get(); }

 private:
  ObjectPtr<PangoFontMap> map_;
  ObjectPtr<PangoContext> context_;
};

// Whether Noto Sans alone has the text: Latin, Greek, Cyrillic (all below U+0530), general
// punctuation and superscripts (U+2000 to U+209F), the minus sign.
bool main_font_suffices(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0xD4) continue;  // also continuation bytes
    const auto byte = [&](std::size_t k) {
      return i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0u;
    };
    const bool punctuation = lead == 0xE2 && byte(1) <= 0x82;
    const bool minus = lead == 0xE2 && byte(1) == 0x88 && byte(2) == 0x92;
    if (!punctuation && !minus) return false;
  }
  return true;
}

}  // namespace

PangoContext* text_context(std::string_view text) {
  // Pango's font maps belong to one thread.
  if (main_font_suffices(text)) {
    thread_local const FontSet fonts(false);
    return fonts.context();
  }
  thread_local const FontSet fonts(true);
  return fonts.context();
}

}  // namespace filigree::figure
