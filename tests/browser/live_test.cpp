// The page of `filigree serve` in a real browser: a prompt is typed, heads are looked at and
// switched off.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "browser/browser.h"
#include "filigree/serve/server.h"
#include "support/served_models.h"

namespace filigree {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class LivePage : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Browser::unavailable(); !why.empty()) GTEST_SKIP() << why;
    browser_ = std::make_unique<Browser>();
    browser_->open(server_.address() + "#prompt=The+cat+sat");
    wait_for_prompt("The cat sat");
  }

  void TearDown() override {
    if (!browser_) return;
    EXPECT_THAT(browser_->console_errors(), IsEmpty());
    EXPECT_THAT(browser_->requests(), Each(StartsWith(server_.address())));
  }

  void wait_for_prompt(const std::string& text) {
    browser_->wait_for(
        fmt::format("return document.body.dataset.shown === '{}' && "
                    "document.querySelectorAll('#predictions table').length === 2",
                    text));
  }
  void wait_for_off(const std::string& heads) {
    browser_->wait_for(fmt::format("return document.body.dataset.off === '{}'", heads));
  }
  std::string text_of(const std::string& selector) {
    return browser_->run(fmt::format("return document.querySelector('{}').textContent", selector));
  }
  // The pixels of a small map.
  std::string picture(int model, const std::string& head) {
    return browser_->run(fmt::format(
        "return document.querySelector('button[data-model=\"{}\"][data-head=\"{}\"] canvas')"
        ".toDataURL()",
        model, head));
  }

  const ModelFolder folder_;
  serve::Api api_{served_models(folder_), {}};
  const serve::Server server_{api_, {}};
  std::unique_ptr<Browser> browser_;
};

TEST_F(LivePage, PredictionsAndMapsFollowWhatIsTyped) {
  EXPECT_EQ(browser_->run("return document.querySelectorAll('button.head').length"), 16);
  const std::string dense = picture(0, "L1H2"), sparse = picture(1, "L1H2"),
                    next = text_of("#predictions");
  EXPECT_NE(dense, sparse);
  const std::string tokens = text_of(".tokens");
  browser_->type("#prompt", " on the mat");
  wait_for_prompt("The cat sat on the mat");
  browser_->wait_for(fmt::format("return document.querySelector('#predictions').textContent !== {}",
                                 nlohmann::json(next).dump()));
  EXPECT_NE(picture(0, "L1H2"), dense);
  EXPECT_NE(picture(1, "L1H2"), sparse);
  EXPECT_THAT(text_of(".tokens"), AllOf(StartsWith(tokens), HasSubstr("\u00b7the")));
  EXPECT_THAT(std::string(browser_->run("return location.hash")), HasSubstr("on+the+mat"));
}

TEST_F(LivePage, PointingAtACellNamesItsTokensInBothModels) {
  const auto place = browser_->run(
      "const b = document.querySelector('button[data-model=\"0\"][data-head=\"L0H1\"] canvas')"
      ".getBoundingClientRect(); return [b.left + 2, b.top + b.height - 3]");
  browser_->point_at(place[0].get<double>(), place[1].get<double>());
  browser_->wait_for("return document.querySelectorAll('.head.twin').length === 2");
  EXPECT_THAT(text_of("#cell-readout"), AllOf(HasSubstr("L0H1"), HasSubstr("(0)"),
                                              HasSubstr("dense "), HasSubstr("sparse ")));
}

TEST_F(LivePage, AHeadIsLookedAtAndSwitchedOff) {
  browser_->click("button[data-model=\"1\"][data-head=\"L0H3\"]");
  browser_->wait_for("return document.querySelector('dialog').open");
  EXPECT_EQ(browser_->run("return document.querySelectorAll('dialog canvas').length"), 3);
  EXPECT_THAT(std::string(browser_->run("return location.hash")), HasSubstr("head=L0H3"));
  browser_->press("\uE00C");  // Escape
  browser_->wait_for("return !document.querySelector('dialog').open");
  const std::string later = picture(0, "L1H1");
  EXPECT_THAT(text_of("#predictions"), Not(HasSubstr("was")));
  browser_->click("#switch");
  browser_->click("button[data-model=\"0\"][data-head=\"L0H3\"]");
  wait_for_off("L0H3");
  browser_->wait_for("return document.querySelectorAll('#predictions .was').length > 2");
  EXPECT_NE(picture(0, "L1H1"), later) << "heads above see what is missing";
  EXPECT_EQ(browser_->run("return document.querySelectorAll('.head.off').length"), 2);
  EXPECT_THAT(std::string(browser_->run("return location.hash")), HasSubstr("off=L0H3"));
  browser_->click(".chip");
  wait_for_off("");
  EXPECT_EQ(picture(0, "L1H1"), later);
}

TEST_F(LivePage, FollowsALinkAndTheTheme) {
  browser_->run("location.hash = '#prompt=A+dog&off=L0H0,L0H1'");
  wait_for_prompt("A dog");
  wait_for_off("L0H0,L0H1");
  EXPECT_EQ(browser_->run("return document.querySelector('#prompt').value"), "A dog");
  const auto page_color = [&] {
    return browser_->run("return getComputedStyle(document.body).backgroundColor");
  };
  const auto before = page_color();
  browser_->click("#theme");
  EXPECT_NE(page_color(), before);
}

TEST_F(LivePage, FindsTheHeadsOfATask) {
  browser_->click("#find");
  browser_->wait_for(
      "return /dense: .* heads, sparse: .* heads/.test("
      "document.querySelector('#circuit').textContent)");
}

}  // namespace
}  // namespace filigree
