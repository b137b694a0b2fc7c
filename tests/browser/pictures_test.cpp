// The views of both pages beside stored pictures. Fonts and versions of Chromium draw letters
// differently, so that pictures are made small first: what stands where, how large and in which
// colour is compared, letters are not. A view that changed on purpose gets a new picture with
//   FILIGREE_STORE_PICTURES=1 build/release/tests/browser_tests --gtest_filter='*Pictures*'
// and a look at it.
#include "support/pictures.h"

#include <cairo.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "browser/browser.h"
#include "filigree/error.h"
#include "report/report_test_support.h"
#include "serve/server.h"
#include "support/files.h"
#include "support/served_models.h"
#include "support/temporary_folder.h"

namespace filigree {
namespace {

using ::testing::HasSubstr;

constexpr int kWidth = 128, kHeight = 90;  // of a small picture
constexpr int kShade = 40;                 // a cell that differs by more is another
constexpr double kMostOthers = 0.04;       // of the cells

// Each cell is the mean of the pixels that fall on it.
Picture made_small(const Picture& large) {
  Picture small = {kWidth, kHeight,
                   std::vector<std::uint32_t>(static_cast<std::size_t>(kWidth * kHeight))};
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x) {
      const int left = x * large.width / kWidth, right = (x + 1) * large.width / kWidth,
                top = y * large.height / kHeight, bottom = (y + 1) * large.height / kHeight;
      std::uint32_t cell = 0;
      for (const int shift : {0, 8, 16}) {
        std::uint32_t sum = 0;
        for (int row = top; row < bottom; ++row)
          for (int column = left; column < right; ++column)
            sum +=
                large.pixels[static_cast<std::size_t>(row * large.width + column)] >> shift & 255;
        cell |= sum / static_cast<std::uint32_t>((right - left) * (bottom - top)) << shift;
      }
      small.pixels[static_cast<std::size_t>(y * kWidth + x)] = cell;
    }
  return small;
}

// "" for pictures of one view.
std::string compare_small(const Picture& actual, const Picture& stored) {
  if (stored.width != kWidth || stored.height != kHeight) return "there is no stored picture";
  std::size_t others = 0;
  for (std::size_t i = 0; i < actual.pixels.size(); ++i)
    others += difference(actual.pixels[i], stored.pixels[i]) > kShade;
  const double share = static_cast<double>(others) / static_cast<double>(actual.pixels.size());
  if (share <= kMostOthers) return "";
  return fmt::format("{:.1f} % of the cells differ, {:.1f} % may", 100 * share, 100 * kMostOthers);
}

void write_picture(const Picture& picture, const std::filesystem::path& file) {
  cairo_surface_t* surface =
      cairo_image_surface_create(CAIRO_FORMAT_RGB24, picture.width, picture.height);
  unsigned char* data = cairo_image_surface_get_data(surface);
  const int stride = cairo_image_surface_get_stride(surface);
  for (int y = 0; y < picture.height; ++y)
    std::memcpy(data + static_cast<std::ptrdiff_t>(y) * stride,
                picture.pixels.data() + static_cast<std::ptrdiff_t>(y) * picture.width,
                static_cast<std::size_t>(picture.width) * 4);
  cairo_surface_mark_dirty(surface);
  const cairo_status_t status = cairo_surface_write_to_png(surface, file.c_str());
  cairo_surface_destroy(surface);
  require(status == CAIRO_STATUS_SUCCESS, "no picture could be written to {}", file.string());
}

class Pictures : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Browser::unavailable(); !why.empty()) GTEST_SKIP() << why;
    browser_ = std::make_unique<Browser>();
  }

  Picture window() {
    const std::filesystem::path file = folder_.path() / "window.png";
    browser_->run(
        "document.activeElement?.blur(); document.querySelectorAll('*').forEach(e => "
        "{ e.style.caretColor = 'transparent' })");
    browser_->screenshot(file.string());
    return made_small(decode_png(read_file(file)));
  }
  static std::filesystem::path stored_file(const std::string& name) {
    return std::filesystem::path(FILIGREE_SOURCE_DIR) / "tests/golden/pages" / (name + ".png");
  }
  static Picture stored(const std::string& name) {
    const std::filesystem::path file = stored_file(name);
    return std::filesystem::exists(file) ? decode_png(read_file(file)) : Picture();
  }
  void expect_stored(const std::string& name) {
    const Picture seen = window();
    if (std::getenv("FILIGREE_STORE_PICTURES") != nullptr) {
      std::filesystem::create_directories(stored_file(name).parent_path());
      write_picture(seen, stored_file(name));
    }
    const std::string different = compare_small(seen, stored(name));
    if (different.empty()) return;
    const std::filesystem::path kept = std::filesystem::temp_directory_path() / (name + ".png");
    write_picture(seen, kept);
    ADD_FAILURE() << name << ": " << different << "; what was seen is " << kept;
  }
  // In light and in dark.
  void expect_both(const std::string& name) {
    for (const char* theme : {"light", "dark"}) {
      if (browser_->run("return document.documentElement.dataset.theme") != theme)
        browser_->click("#theme");
      expect_stored(fmt::format("{}-{}", name, theme));
    }
  }
  void open_report() {
    write_report(test_report(), folder_.path() / "report.html");
    browser_->open("file://" + (folder_.path() / "report.html").string());
    browser_->wait_for("return document.querySelectorAll('button.head').length === 40");
  }

  const TemporaryFolder folder_;
  std::unique_ptr<Browser> browser_;
};

TEST_F(Pictures, OfTheReport) {
  open_report();
  expect_both("report-heads");
  browser_->click("#tab-tokens");
  browser_->wait_for("return document.querySelectorAll('#arcs .arc').length > 0");
  expect_both("report-tokens");
  browser_->click("#tab-lens");
  browser_->wait_for("return document.querySelectorAll('#attribution .cells').length === 2");
  expect_both("report-lens");
  browser_->click("#tab-changes");
  browser_->wait_for("return document.querySelectorAll('.changed tbody tr').length === 3");
  expect_both("report-changes");
}

TEST_F(Pictures, OfTheLivePage) {
  const ModelFolder models;
  serve::Api api(served_models(models), {});
  const serve::Server server(api, {});
  const auto open = [&](const std::string& place, const std::string& until) {
    browser_->open("about:blank");
    browser_->open(server.address() + "#prompt=The+cat+sat+on+the+mat" + place);
    browser_->wait_for("return document.body.dataset.shown === 'The cat sat on the mat' && " +
                       until);
  };
  open("", "!document.querySelector('#role').disabled");
  expect_both("live-heads");
  open("&view=tokens&at=3", "document.querySelectorAll('#arcs .arc').length > 0");
  expect_both("live-tokens");
  open("&view=lens", "document.querySelectorAll('#attribution .cells').length === 2");
  expect_both("live-lens");
  open("&head=L1H2&off=L0H1",
       "document.querySelector('dialog')?.open && "
       "document.querySelectorAll('dialog .writes').length === 2");
  expect_stored("live-head");
}

// Whoever trusts these pictures wants to know that they see what they should.
TEST_F(Pictures, AChangedPageFails) {
  if (std::getenv("FILIGREE_STORE_PICTURES") != nullptr) GTEST_SKIP() << "pictures are being made";
  open_report();
  if (browser_->run("return document.documentElement.dataset.theme") != "light")
    browser_->click("#theme");
  const auto difference_after = [&](const std::string& change) {
    browser_->run(change);
    return compare_small(window(), stored("report-heads-light"));
  };
  EXPECT_EQ(difference_after(""), "");
  EXPECT_THAT(difference_after("document.querySelectorAll('.head canvas').forEach(c => "
                               "{ c.style.opacity = 0 })"),
              HasSubstr("differ"))
      << "maps are missing";
  EXPECT_THAT(
      difference_after("document.querySelectorAll('.head canvas').forEach(c => "
                       "{ c.style.opacity = 1 }); "
                       "document.querySelectorAll('.panel')[1].style.visibility = 'hidden'"),
      HasSubstr("differ"))
      << "a model is missing";
  EXPECT_THAT(difference_after("document.querySelectorAll('.panel')[1].style.visibility = ''; "
                               "document.querySelector('main').style.marginLeft = '40px'"),
              HasSubstr("differ"))
      << "everything has moved";
  EXPECT_THAT(difference_after("document.querySelector('main').style.marginLeft = ''; "
                               "document.querySelector('#theme').click()"),
              HasSubstr("differ"))
      << "it is dark";
}

}  // namespace
}  // namespace filigree
