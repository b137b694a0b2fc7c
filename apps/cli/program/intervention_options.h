// --ablate, --scale and --patch: what runs of a model change, the same in every command that has
// them.
#pragma once

#include <CLI/App.hpp>

#include <string>

#include "filigree/analyze/interventions/interventions.h"

namespace filigree::cli {

void add_intervention_options(CLI::App& app, Interventions& interventions);

// "changed: L6H11 ablated" on a line of its own, or nothing.
std::string changed_text(const Interventions& interventions);

}  // namespace filigree::cli
