// Formats: sizes, embedded fonts, the same bytes every time, errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "filigree/figures.h"
#include "support/errors.h"
#include "support/figure_samples.h"
#include "support/files.h"
#include "support/pictures.h"
#include "support/temporary_folder.h"

namespace filigree::figure {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size()))
    ++found;
  return found;
}

Figure small_figure() { return samples::all()[0].make(light_theme()); }

TEST(Save, TheEndingChoosesTheFormat) {
  const TemporaryFolder folder;
  const Figure figure = small_figure();
  save(figure, folder.path() / "a.svg");
  save(figure, folder.path() / "a.PDF");
  save(figure, folder.path() / "a.png");
  EXPECT_THAT(read_file(folder.path() / "a.svg"), StartsWith("<?xml"));
  EXPECT_THAT(read_file(folder.path() / "a.PDF"), StartsWith("%PDF-"));
  EXPECT_THAT(read_file(folder.path() / "a.png"), StartsWith("\x89PNG"));
  for (const char* name : {"a.jpg", "a", "svg"})
    EXPECT_THAT(error_of([&] { save(figure, folder.path() / name); }),
                AllOf(HasSubstr(name), HasSubstr(".svg, .pdf or .png")));
}

TEST(Save, AnUnwritablePathIsNamedAndNothingIsLeftBehind) {
  const TemporaryFolder folder;
  const std::filesystem::path nowhere = folder.path() / "missing" / "a.svg";
  EXPECT_THAT(error_of([&] { save(small_figure(), nowhere); }),
              AllOf(HasSubstr(nowhere.string()), HasSubstr("No such file or directory")));
  std::filesystem::create_directory(folder.path() / "b.svg");
  EXPECT_THAT(error_of([&] { save(small_figure(), folder.path() / "b.svg"); }),
              HasSubstr("Is a directory"));
  EXPECT_THAT(error_of([&] { save(small_figure(), folder.path() / "c.png", {.dpi = 0}); }),
              HasSubstr("0 dpi"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "c.png"));
}

TEST(Save, APictureThatIsTooLargeSaysWhatIsPossible) {
  Figure figure = small_figure();
  figure.size.height = 30'000;
  const std::string message = error_of([&] { render(figure, Format::kPng, {.dpi = 300}); });
  EXPECT_THAT(message, AllOf(HasSubstr("125001 pixels"), HasSubstr("at most 78 dpi")));
  EXPECT_EQ(error_of([&] { render(figure, Format::kPdf); }), "no error");
}

TEST(Save, APngHasTheSizeAndTheResolutionAskedFor) {
  const Figure figure = small_figure();
  const std::string png = render(figure, Format::kPng, {.dpi = 144});
  const Picture picture = decode_png(png);  // also checks the checksum of the added chunk
  EXPECT_EQ(picture.width, std::ceil(2 * figure.size.width));
  EXPECT_EQ(picture.height, std::ceil(2 * figure.size.height));
  // 144 dots an inch are 5669 = 0x1625 a metre.
  EXPECT_THAT(png, HasSubstr(std::string("pHYs\0\0\x16\x25\0\0\x16\x25\1", 13)));
  // Nothing of the page stays black, not even where the last pixel lies partly beyond it.
  EXPECT_EQ(picture.pixels.back(), 0xFFFFFFu);
}

TEST(Save, APdfEmbedsItsFontsAndKeepsTextSearchable) {
  const std::string pdf = render(small_figure(), Format::kPdf);
  EXPECT_THAT(pdf, HasSubstr("+NotoSans-Regular"));  // a subset
  EXPECT_THAT(pdf, HasSubstr("+NotoSans-Bold"));
  const std::size_t fonts = count(pdf, "/Type /FontDescriptor");
  EXPECT_GE(fonts, 2u);
  EXPECT_EQ(count(pdf, "/FontFile2") + count(pdf, "/FontFile3"), fonts);
  EXPECT_EQ(count(pdf, "/ToUnicode"), count(pdf, "/FirstChar") + count(pdf, "/Type0"));
  EXPECT_THAT(pdf, HasSubstr("/Title"));
}

TEST(Save, AnSvgHasOutlinesSharpMapsAndATitle) {
  Figure figure = small_figure();
  figure.title = "a < b & c";
  const std::string svg = render(figure, Format::kSvg);
  EXPECT_THAT(svg, HasSubstr("<title>a &lt; b &amp; c</title>"));
  EXPECT_THAT(svg, Not(HasSubstr("<text")));
  EXPECT_GT(count(svg, "#glyph"), 100u);
  EXPECT_EQ(count(svg, "<image "), 17u + 9u + 1u);  // the heads and the colour bar
  EXPECT_EQ(count(svg, "image-rendering:pixelated"), 27u);
  EXPECT_THAT(svg, Not(HasSubstr("http://127")));
}

TEST(Save, TheSameFigureGivesTheSameBytes) {
  for (const Format format : {Format::kSvg, Format::kPdf, Format::kPng}) {
    const std::string first = render(small_figure(), format);
    render(samples::all()[3].make(dark_theme()), format);  // whatever was drawn in between
    EXPECT_TRUE(first == render(small_figure(), format)) << static_cast<int>(format);
  }
}

TEST(Save, APageOf288MapsStaysBelowThreeMegabytes) {
  // Scores with much noise: nothing that compresses well.
  constexpr std::size_t kTokens = 256;
  AttentionGrid grid = samples::grid(0, 0, 1, true);
  for (GridPanel& panel : grid.panels)
    for (int i = 0; i < 144; ++i)
      panel.heads.push_back(
          grid_head({i / 12, i % 12},
                    samples::weights(static_cast<samples::Pattern>(i % samples::kPatterns), kTokens,
                                     static_cast<std::uint64_t>(i), 2),
                    kTokens));
  const Figure figure = make_figure(grid, light_theme());
  EXPECT_LT(figure.size.height, 800) << "more than one page";
  for (const Format format : {Format::kSvg, Format::kPdf, Format::kPng})
    EXPECT_LT(render(figure, format).size(), 3'000'000u) << static_cast<int>(format);
}

}  // namespace
}  // namespace filigree::figure
