#include "figure/text.h"

#include <fmt/format.h>

#include <cstdint>

#include "base/utf8.h"
#include "figure/text_layout.h"

namespace filigree::figure {

namespace {

bool has_no_look(char32_t code) {
  switch (g_unichar_type(code)) {
    case G_UNICODE_CONTROL:
    case G_UNICODE_FORMAT:
    case G_UNICODE_SURROGATE:
    case G_UNICODE_PRIVATE_USE:
    case G_UNICODE_UNASSIGNED:
    case G_UNICODE_LINE_SEPARATOR:
    case G_UNICODE_PARAGRAPH_SEPARATOR: return true;
    default: return false;
  }
}

bool is_combining(char32_t code) {
  const GUnicodeType type = g_unichar_type(code);
  return type == G_UNICODE_NON_SPACING_MARK || type == G_UNICODE_SPACING_MARK ||
         type == G_UNICODE_ENCLOSING_MARK;
}

std::string made_visible(std::string_view text, bool token) {
  // Arrows and control pictures (U+2400...) are what readers know from editors.
  constexpr char32_t kReturn = 0x21B5, kTab = 0x21E5, kPictures = 0x2400, kOpenBox = 0x2423,
                     kDelete = 0x2421, kDottedCircle = 0x25CC;
  std::string out;
  while (!text.empty()) {
    const Utf8Sequence character = utf8_sequence(text);
    if (!character.is_character()) {
      out += fmt::format("\\x{:02X}", static_cast<unsigned char>(text[0]));
      text.remove_prefix(1);
      continue;
    }
    const char32_t code = character.code;
    if (code == '\n')
      append_utf8(out, kReturn);
    else if (code == '\t')
      append_utf8(out, kTab);
    else if (code < 0x20)
      append_utf8(out, kPictures + code);
    else if (code == 0x7F)
      append_utf8(out, kDelete);
    else if (code == ' ' && token)
      append_utf8(out, kOpenBox);
    else if (has_no_look(code))
      out += fmt::format("<U+{:04X}>", static_cast<std::uint32_t>(code));
    else {
      if (token && out.empty() && is_combining(code)) append_utf8(out, kDottedCircle);
      out += text.substr(0, character.length);
    }
    text.remove_prefix(character.length);
  }
  return out;
}

}  // namespace

std::string visible_text(std::string_view text) { return made_visible(text, false); }

std::string visible_token(std::string_view token) {
  return token.empty() ? "∅" : made_visible(token, true);
}

ObjectPtr<PangoLayout> make_layout(std::string_view text, const TextStyle& style) {
  const std::string visible = visible_text(text);
  ObjectPtr<PangoLayout> layout(pango_layout_new(text_context(visible)));
  PangoFontDescription* font = pango_font_description_new();
  pango_font_description_set_family_static(font, kFontFamily);
  pango_font_description_set_absolute_size(font, style.size * PANGO_SCALE);
  if (style.bold) pango_font_description_set_weight(font, PANGO_WEIGHT_BOLD);
  if (style.italic) pango_font_description_set_style(font, PANGO_STYLE_ITALIC);
  pango_layout_set_font_description(layout.get(), font);
  pango_font_description_free(font);
  pango_layout_set_auto_dir(layout.get(), FALSE);  // tokens stand left to right whatever they are
  pango_layout_set_text(layout.get(), visible.data(), static_cast<int>(visible.size()));
  if (style.max_width > 0) {
    pango_layout_set_width(layout.get(), static_cast<int>(style.max_width * PANGO_SCALE));
    pango_layout_set_ellipsize(layout.get(), PANGO_ELLIPSIZE_END);
    if (style.max_lines > 1) {
      pango_layout_set_wrap(layout.get(), PANGO_WRAP_WORD_CHAR);
      pango_layout_set_height(layout.get(), -style.max_lines);
    }
  }
  return layout;
}

Size text_size(std::string_view text, const TextStyle& style) {
  const ObjectPtr<PangoLayout> layout = make_layout(text, style);
  PangoRectangle logical;
  pango_layout_get_extents(layout.get(), nullptr, &logical);
  return {static_cast<double>(logical.width) / PANGO_SCALE,
          line_height(style.size) * pango_layout_get_line_count(layout.get())};
}

// Both are Noto Sans's; constants, because fallback fonts with tall lines must not move a label.
double line_height(double size) { return 1.362 * size; }
double cap_height(double size) { return 0.714 * size; }

}  // namespace filigree::figure
