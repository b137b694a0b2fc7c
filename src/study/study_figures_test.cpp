#include "filigree/study_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "filigree/study.h"
#include "support/temporary_folder.h"

namespace filigree::study {
namespace {

using ::testing::HasSubstr;

figure::LabelledMaps small_map() {
  figure::MapPanel panel;
  panel.rows.labels = {"0", "1"};
  panel.columns.labels = {"a", "b"};
  panel.values = {0.1f, -0.2f, 0.3f, 0.0f};
  figure::LabelledMaps maps;
  maps.title = "two by two";
  maps.panels = {panel};
  return maps;
}

TEST(Figures, EndingsAreThoseOfTheFormatsInEitherCase) {
  for (const char* file : {"a.svg", "b/c.PDF", "d.e.png"}) EXPECT_TRUE(is_figure_file(file));
  for (const char* file : {"", "svg", "a.gif", "a.svgz", "a.", ".svg/a"})
    EXPECT_FALSE(is_figure_file(file)) << file;
}

TEST(Figures, AnotherEndingIsARequestThatMakesNoSense) {
  EXPECT_NO_THROW(check_figure_file(""));
  EXPECT_NO_THROW(check_figure_file("a.svg"));
  EXPECT_THROW(check_figure_file("a.gif"), RequestError);
}

TEST(Figures, AreDrawnInTheThemeThatIsAsked) {
  const figure::LabelledMaps maps = small_map();
  const std::string light = figure_svg(&maps, {});
  EXPECT_THAT(light, HasSubstr("<svg"));
  EXPECT_NE(light, figure_svg(&maps, {.theme = FigureTheme::kDark}));
  const TemporaryFolder folder;
  save_figure(&maps, folder.path() / "coarse.png", {.dpi = 50});
  save_figure(&maps, folder.path() / "fine.png", {.dpi = 200});
  EXPECT_LT(std::filesystem::file_size(folder.path() / "coarse.png"),
            std::filesystem::file_size(folder.path() / "fine.png"));
}

}  // namespace
}  // namespace filigree::study
