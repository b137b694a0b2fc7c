// --show NAME,...: what a command prints or lists besides what it always does.
#pragma once

#include <CLI/App.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "apps/cli/program/choices.h"

namespace filigree::cli {

class ShowOption {
 public:
  void add(CLI::App& app, const std::vector<std::string>& names, const std::string& help) {
    add_choices(app, "--show", chosen_, names, help);
  }

  bool has(std::string_view name) const {
    return std::find(chosen_.begin(), chosen_.end(), name) != chosen_.end();
  }
  bool empty() const { return chosen_.empty(); }

 private:
  std::vector<std::string> chosen_;
};

}  // namespace filigree::cli
