// What `circuit` found in a model, as text and JSON.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/circuits/model_circuits.h"

namespace filigree::cli {

// Sizes side by side with the ratio to the first model, what each model can do, and each one's
// `top` first parts.
std::string circuit_text(const std::vector<ModelCircuit>& circuits, std::size_t top);

// The task, how parts were scored and chosen, and every model's circuit with its curve; with
// kEvery, the score of every part too.
enum class Scores { kEvery, kLeftOut };
Json circuits_json(const std::vector<ModelCircuit>& circuits, Scores scores);
Json circuit_json(const ModelCircuit& circuit, Scores wanted = Scores::kEvery);

// "12", "none claimed", "level not reached".
std::string size_text(const ModelCircuit& circuit);
// How many times smaller than the first model's circuit; null where either has none.
Json size_ratio(const ModelCircuit& first, const ModelCircuit& circuit);
// "2.50x"; "" for the first model itself and where there is no ratio.
std::string ratio_text(const ModelCircuit& first, const ModelCircuit& circuit);

}  // namespace filigree::cli
