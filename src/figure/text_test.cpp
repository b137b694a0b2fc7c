#include "figure/text.h"

#include <gtest/gtest.h>

#include <string>

#include "figure/canvas.h"
#include "figure/fonts.h"

namespace filigree::figure {
namespace {

TEST(VisibleText, EveryByteCanBeSeen) {
  EXPECT_EQ(visible_token(" the"), "␣the");
  EXPECT_EQ(visible_text(" the"), " the");
  EXPECT_EQ(visible_token("a\nb"), "a↵b");
  EXPECT_EQ(visible_token("\t"), "⇥");
  EXPECT_EQ(visible_token(std::string("\0\x01\x7F", 3)), "␀␁␡");
  EXPECT_EQ(visible_token("\xF0\x9F"), "\\xF0\\x9F");  // half an emoji
  EXPECT_EQ(visible_token("\xC0\xAF"), "\\xC0\\xAF");  // overlong
  EXPECT_EQ(visible_token(""), "∅");
  EXPECT_EQ(visible_token("\u200B"), "<U+200B>");
  EXPECT_EQ(visible_token("\u202Eabc"), "<U+202E>abc");  // would turn the text around
  EXPECT_EQ(visible_token("\u0301"), "\u25CC\u0301");
  EXPECT_EQ(visible_token("e\u0301"), "e\u0301");
  EXPECT_EQ(visible_text("Привет 你好"), "Привет 你好");
}

TEST(TextSize, LongTextIsCut) {
  const std::string text(500, 'm');
  EXPECT_GT(text_size(text, {.size = 7}).width, 1000);
  EXPECT_LE(text_size(text, {.size = 7, .max_width = 80}).width, 80);
  const std::string words = "one two three four five six seven eight nine ten eleven twelve";
  EXPECT_EQ(text_size(words, {.size = 7, .max_width = 80, .max_lines = 2}).height,
            2 * line_height(7));
  EXPECT_EQ(text_size("short", {.size = 7, .max_width = 80, .max_lines = 2}).height,
            line_height(7));
}

TEST(TextSize, EveryScriptHasGlyphs) {
  // A font that is missing would draw boxes with the character's number in them.
  for (const char* text :
       {"Latin", "Ελληνικά", "Кириллица", "עברית", "العربية", "हिन्दी", "বাংলা", "தமிழ்", "ไทย",
        "ქართული", "Հայերեն", "አማርኛ", "中文", "日本語", "한국어", "−×÷⁻³", "␣↵⇥␀␡", "∅◌", "→"}) {
    const std::string visible = visible_text(text);
    PangoLayout* layout = pango_layout_new(text_context(visible));
    PangoFontDescription* font = pango_font_description_from_string(kFontFamily);
    pango_layout_set_font_description(layout, font);
    pango_layout_set_text(layout, visible.c_str(), -1);
    EXPECT_EQ(pango_layout_get_unknown_glyphs_count(layout), 0) << text;
    pango_font_description_free(font);
    g_object_unref(layout);
  }
}

}  // namespace
}  // namespace filigree::figure
