// Evaluations of one model or of several, side by side, as tables.
#pragma once

#include <string>
#include <vector>

#include "filigree/evaluation_study.h"

namespace filigree::cli {

using study::EvaluatedModel;

// One row a model; from the second on with the change against the first. "±" is one standard error.
std::string evaluation_table(const std::vector<EvaluatedModel>& models);
// Active edges and keys per query: one row a layer.
std::string layer_table(const std::vector<EvaluatedModel>& models);
// Active edges: for each model one row a layer and one column a head.
std::string head_tables(const std::vector<EvaluatedModel>& models);

}  // namespace filigree::cli
