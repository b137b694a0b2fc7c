// What goes back to the browser.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "filigree/study.h"

namespace filigree::serve {

using study::Json;

// Takes the next piece of an answer; false: nobody reads it any more.
using WritePiece = std::function<bool(std::string_view)>;

struct Answer {
  int status = 200;
  std::string type = "application/json";
  std::string body = {};
  // Answers that come bit by bit, in the place of a body. Throws nothing.
  std::function<void(const WritePiece&)> stream = {};
  std::string file = {};  // the name under which a browser saves it; "": it is shown
};

// Tokens may be pieces of characters: those are shown as the replacement character.
Answer json_answer(const Json& json, int status = 200);

// {"error": ..., "remedy": ...}
Answer error_answer(int status, const std::string& error, const std::string& remedy);

// A request that is not answered: the status of HTTP, what is wrong and what would be right.
class Refusal : public std::runtime_error {
 public:
  Refusal(int status, const std::string& error, std::string remedy)
      : std::runtime_error(error), status_(status), remedy_(std::move(remedy)) {}

  int status() const { return status_; }
  const std::string& remedy() const { return remedy_; }

 private:
  int status_;
  std::string remedy_;
};

}  // namespace filigree::serve
