// What the live page does at every letter that is typed, and what it leaves alone: a browser has
// little time then.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "browser/browser.h"
#include "serve/server.h"
#include "support/served_models.h"

namespace filigree {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Typing : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Browser::unavailable(); !why.empty()) GTEST_SKIP() << why;
    browser_ = std::make_unique<Browser>();
    open("The cat sat");
  }
  void TearDown() override {
    if (!browser_) return;
    EXPECT_THAT(browser_->console_errors(), IsEmpty());
  }

  void open(const std::string& prompt) {
    browser_->open("about:blank");
    browser_->open(server_.address() + "#prompt=" + prompt);
    wait_for(prompt);
    // Roles come once.
    browser_->wait_for("return !document.querySelector('#role').disabled");
  }
  void wait_for(const std::string& prompt) {
    browser_->wait_for(fmt::format("return document.body.dataset.shown === '{}'", prompt));
  }
  // All pixels of the maps.
  nlohmann::json pictures() {
    return browser_->run(
        "return [...document.querySelectorAll('.sheet')].map(c => c.getContext('2d')"
        ".getImageData(0, 0, c.width, c.height).data.join()).join()");
  }

  const ModelFolder folder_;
  serve::Api api_{served_models(folder_), {}};
  const serve::Server server_{api_, {}};
  std::unique_ptr<Browser> browser_;
};

TEST_F(Typing, AsksForTheRowsThatAreNew) {
  browser_->run(
      "window.asked = []; const whole = window.fetch;"
      "window.fetch = async (path, options) => {"
      "  const answer = await whole(path, options);"
      "  if (path === '/api/look')"
      "    asked.push([JSON.parse(options.body).after,"
      "                (await answer.clone().arrayBuffer()).byteLength]);"
      "  return answer;"
      "}");
  for (const char* more : {" on", " the", " mat"}) browser_->type("#prompt", more);
  browser_->type("#prompt", "\uE003\uE003");  // Backspace
  wait_for("The cat sat on the m");
  const auto asked = browser_->run("return asked");
  ASSERT_FALSE(asked.empty());
  for (const auto& one : asked) EXPECT_TRUE(one[0].is_string()) << asked;
  const auto grown = pictures();
  open("The cat sat on the m");
  EXPECT_EQ(pictures(), grown) << "put together, they are the maps of the text";
}

TEST_F(Typing, WritesTheAddressWhenTheHandRests) {
  const auto written = browser_->run(
      "window.written = 0; const replace = history.replaceState;"
      "history.replaceState = function (...what) { ++written; replace.apply(this, what); };"
      "const box = document.querySelector('#prompt');"
      "for (const letter of ' on the mat') {"
      "  box.value += letter; box.dispatchEvent(new Event('input')); }"
      "return written");
  EXPECT_EQ(written, 0);
  browser_->wait_for("return location.hash.includes('on+the+mat')");
  EXPECT_EQ(browser_->run("return written"), 1);
  wait_for("The cat sat on the mat");
  // What is chosen stands there at once, with what was typed before.
  browser_->run(
      "const box = document.querySelector('#prompt'); box.value += '!';"
      "box.dispatchEvent(new Event('input'))");
  browser_->click("#tab-tokens");
  EXPECT_THAT(browser_->run("return location.hash").get<std::string>(),
              ::testing::AllOf(HasSubstr("mat%21"), HasSubstr("view=tokens")));
}

TEST_F(Typing, LeavesWhatStaysAsItIs) {
  browser_->run(
      "window.touched = []; document.querySelector('.token').dataset.same = 'yes';"
      "const note = (name) => new MutationObserver(() => touched.push(name));"
      "note('root').observe(document.documentElement, { attributes: true });"
      "note('roles').observe(document.querySelector('#role'), { childList: true });"
      "for (const maps of document.querySelectorAll('.maps'))"
      "  note('buttons').observe(maps, { childList: true, subtree: true, attributes: true });");
  browser_->type("#prompt", " on");
  wait_for("The cat sat on");
  EXPECT_EQ(browser_->run("return touched.join()"), "");
  EXPECT_EQ(browser_->run("return document.querySelector('.token').dataset.same"), "yes");
  EXPECT_EQ(browser_->run("return [...document.querySelectorAll('.maps')].every(maps =>"
                          "  getComputedStyle(maps).isolation === 'isolate' &&"
                          "  !maps.querySelector('.sheet'))"),
            true)
      << "buttons are not painted again when maps are drawn";
}

// One model after the other within a moment: the page shows both at once. One that keeps the page
// waiting does not keep the other.
TEST_F(Typing, ShowsThePredictionsOfBothModelsTogether) {
  browser_->run(
      "window.batches = []; window.second = 'soon'; const whole = window.fetch; let first = null;"
      "window.fetch = async (path, options) => {"
      "  const answer = await whole(path, options);"
      "  if (path !== '/api/look') return answer;"
      "  const held = new Response(await answer.arrayBuffer());"
      "  if (JSON.parse(options.body).models[0] === 'dense')"
      "    return new Promise(done => { first = () => done(held); });"
      "  while (first === null) await new Promise(wake => setTimeout(wake, 1));"
      "  first(); first = null;"
      "  if (second === 'never') return new Promise(() => {});"
      "  await new Promise(wake => setTimeout(wake));"
      "  return held;"
      "};"
      "new MutationObserver((all) => batches.push(new Set(all.map(({ target }) => target)).size))"
      "  .observe(document.querySelector('#predictions'), { childList: true, subtree: true })");
  browser_->type("#prompt", "!");
  wait_for("The cat sat!");
  EXPECT_EQ(browser_->run("return batches.join()"), "2") << "two panels, once";
  browser_->run("window.second = 'never'");
  browser_->type("#prompt", "!");
  browser_->wait_for("return batches.join() === '2,1'");
}

}  // namespace
}  // namespace filigree
