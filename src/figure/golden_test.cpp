// Every figure against its stored picture. A figure that changed on purpose gets new ones with
//   build/release/examples/figure_gallery tests/golden/figures --stored --format png --dpi 80
// and a look at them.
#include <gtest/gtest.h>

#include <filesystem>
#include <ostream>
#include <string>

#include "base/atomic_file.h"
#include "filigree/figures.h"
#include "support/figure_samples.h"
#include "support/files.h"
#include "support/pictures.h"

namespace filigree::figure {
namespace {

constexpr double kDpi = 80;

struct Case {
  samples::Sample sample;
  std::string theme;
};

// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest looks for this name.
void PrintTo(const Case& test, std::ostream* out) { *out << test.sample.name << " " << test.theme; }

std::vector<Case> stored_cases() {
  std::vector<Case> cases;
  for (const samples::Sample& sample : samples::all())
    for (const std::string& theme : theme_names())
      if (sample.stored) cases.push_back({sample, theme});
  return cases;
}

class StoredPicture : public testing::TestWithParam<Case> {};

TEST_P(StoredPicture, LooksTheSame) {
  const auto& [sample, theme] = GetParam();
  const std::string name = sample.name + "-" + theme + ".png";
  const std::string png = render(sample.make(theme_named(theme)), Format::kPng, {.dpi = kDpi});
  const Picture actual = decode_png(png);
  const Picture stored = decode_png(read_file(golden_folder() / "figures" / name));
  ASSERT_GT(stored.width, 0) << "tests/golden/figures/" << name << " is missing or no PNG";
  const std::string different = compare_pictures(actual, stored);
  if (different.empty()) return;
  const std::filesystem::path folder = FILIGREE_BINARY_DIR "/figure-differences";
  std::filesystem::create_directories(folder);
  write_file_atomically(folder / name, png);
  ADD_FAILURE() << name << ": " << different << "; the picture made now is " << folder / name;
}

INSTANTIATE_TEST_SUITE_P(Figures, StoredPicture, testing::ValuesIn(stored_cases()),
                         [](const auto& test) {
                           return test.param.sample.name + "_" + test.param.theme;
                         });

TEST(ComparePictures, SeesALostLabelAndForgivesShading) {
  const Figure figure = samples::all()[0].make(light_theme());
  const Picture picture = decode_png(render(figure, Format::kPng, {.dpi = kDpi}));
  ASSERT_GT(picture.width, 0);
  Picture changed = picture;
  for (std::uint32_t& pixel : changed.pixels) pixel ^= 0x030303;
  EXPECT_EQ(compare_pictures(changed, picture), "");
  // The area of one label of a map.
  changed = picture;
  for (int y = 0; y < 10; ++y)
    for (int x = 0; x < 20; ++x)
      changed.pixels[static_cast<std::size_t>((60 + y) * picture.width + 60 + x)] ^= 0x808080;
  EXPECT_NE(compare_pictures(changed, picture), "");
  changed = picture;
  changed.height -= 1;
  EXPECT_NE(compare_pictures(changed, picture), "");
}

}  // namespace
}  // namespace filigree::figure
