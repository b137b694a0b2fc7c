// --ablate, --scale and --patch: what runs of a model change, the same in every command that has
// them.
#pragma once

#include <CLI/App.hpp>

#include <string>

#include "filigree/features.h"
#include "filigree/interventions.h"

namespace filigree::cli {

void add_intervention_options(CLI::App& app, Interventions& interventions);

// An option of changes of features, `name`, with --features for the folder that has them.
void add_steering_options(CLI::App& app, const std::string& name,
                          std::vector<SteeringChange>& changes, std::string& features);

}  // namespace filigree::cli
