// A headless Chromium driven through chromedriver (W3C WebDriver over HTTP), for tests of pages.
#pragma once

#include <nlohmann/json.hpp>

#include <memory>
#include <string>
#include <vector>

#include "support/temporary_folder.h"

namespace filigree {

class Browser {
 public:
  // Why there can be no browser here ("chromium is not installed"), or empty.
  static std::string unavailable();

  // Throws Error when the browser does not come up.
  Browser();
  ~Browser();
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  void open(const std::string& url);

  // The value of a script's `return`; promises are waited for.
  nlohmann::json run(const std::string& script);
  // Runs a script until it returns something true, at most ten seconds (more under a sanitizer);
  // throws Error then.
  void wait_for(const std::string& script);

  // Clicks the middle of the first element that a CSS selector finds.
  void click(const std::string& selector);
  // Types into it, behind what is there.
  void type(const std::string& selector, const std::string& text);
  // Moves the pointer to a place in the window.
  void point_at(double x, double y);
  void press_mouse();                  // and releases it, where the pointer is
  void press(const std::string& key);  // WebDriver's code of the key

  // Errors on the console so far, and addresses that were asked for beside the pages opened.
  std::vector<std::string> console_errors();
  std::vector<std::string> requests();

  // The window as a PNG file.
  void screenshot(const std::string& path);

 private:
  struct Connection;

  nlohmann::json call(const std::string& path, const nlohmann::json& body);
  std::string find(const std::string& selector);  // the path of an element
  nlohmann::json log(const std::string& type);

  TemporaryFolder profile_;
  int driver_ = -1;  // process
  std::unique_ptr<Connection> connection_;
  std::string session_;
  std::vector<std::string> opened_;
};

}  // namespace filigree
