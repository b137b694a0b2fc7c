// Knobs (filigree/knobs.h) on the command line: options for those of the levels basic and more, and
// for all of them --set NAME=VALUE and --recipe, which reads the settings as JSON.
//
// What an option says counts before what --set says, and that before the recipe.
#pragma once

#include <CLI/App.hpp>

#include <string>
#include <utility>
#include <vector>

#include "filigree/knobs.h"

namespace filigree::cli {

class KnobOptions {
 public:
  // Adds the options to `app`. Neither may be moved afterwards.
  void add(CLI::App& app, Knobs knobs);

  // Sets what was given. Throws UsageError for a recipe that cannot be read or says nonsense.
  void apply() const;

  const std::vector<Knob>& all() const { return knobs_.all(); }

 private:
  Knobs knobs_;
  std::string recipe_;
  std::vector<std::string> set_;
  std::vector<std::pair<std::string, CLI::Option*>> options_;  // of the knobs that have one
};

}  // namespace filigree::cli
