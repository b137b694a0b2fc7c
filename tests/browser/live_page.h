// The page of `filigree serve` in a real browser, for tests: a small model and the same with gates,
// open at the prompt "The cat sat".
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "browser/browser.h"
#include "serve/server.h"
#include "support/served_models.h"

namespace filigree {

class LivePage : public ::testing::Test {
 protected:
  LivePage() : api_(served_models(folder_), {}) {}
  explicit LivePage(const std::filesystem::path& features)
      : api_(model_with_features(folder_, features), {}) {}

  void SetUp() override {
    if (const std::string why = Browser::unavailable(); !why.empty()) GTEST_SKIP() << why;
    browser_ = std::make_unique<Browser>();
    browser_->open(server_.address() + "#prompt=The+cat+sat");
    wait_for_prompt("The cat sat");
  }

  void TearDown() override {
    if (!browser_) return;
    EXPECT_THAT(browser_->console_errors(), ::testing::IsEmpty());
    EXPECT_THAT(browser_->requests(), ::testing::Each(::testing::StartsWith(server_.address())));
  }

  void wait_for_prompt(const std::string& text) {
    browser_->wait_for(
        fmt::format("return document.body.dataset.shown === '{}' && "
                    "document.querySelectorAll('#predictions table').length === {}",
                    text, api_.models().size()));
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
        "const m = document.querySelector('button[data-model=\"{0}\"][data-head=\"{1}\"] .map')"
        ".getBoundingClientRect(), c = document.querySelectorAll('.sheet')[{0}],"
        "  b = c.getBoundingClientRect(), r = c.width / b.width;"
        "return c.getContext('2d').getImageData(Math.round((m.left - b.left) * r),"
        "  Math.round((m.top - b.top) * r), m.width * r, m.height * r).data.join()",
        model, head));
  }
  int count(const std::string& selector) {
    return browser_->run(fmt::format("return document.querySelectorAll('{}').length", selector));
  }
  // Sets the value of a control as its user would.
  void set(const std::string& selector, const std::string& value) {
    browser_->run(
        fmt::format("const e = document.querySelector('{}'); e.value = {};"
                    "e.dispatchEvent(new Event('input')); e.dispatchEvent(new Event('change'))",
                    selector, nlohmann::json(value).dump()));
  }
  void wait_for_changes(const std::string& changes) {
    browser_->wait_for(fmt::format("return document.body.dataset.changes === '{}'", changes));
  }
  std::string hash() { return browser_->run("return decodeURIComponent(location.hash)"); }

  const ModelFolder folder_;
  serve::Api api_;
  const serve::Server server_{api_, {}};
  std::unique_ptr<Browser> browser_;
};

}  // namespace filigree
