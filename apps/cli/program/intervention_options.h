// --ablate, --scale and --patch: what runs of a model change, the same in every command that has
// them.
#pragma once

#include <CLI/App.hpp>

#include <string>

#include "filigree/features.h"
#include "filigree/interventions.h"

namespace filigree::cli {

void add_intervention_options(CLI::App& app, Interventions& interventions);

// --steer, with --features for the folder that has the features.
void add_steering_options(CLI::App& app, std::vector<SteeringChange>& changes,
                          std::string& features);

}  // namespace filigree::cli
