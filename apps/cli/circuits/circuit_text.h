// Circuits that were found, as text for the terminal.
#pragma once

#include <string>
#include <vector>

#include "filigree/circuit_study.h"

namespace filigree::cli {

// Sizes side by side with the ratio to the first model, what each model can do, and each one's
// `top` first parts.
std::string circuit_text(const study::CircuitsOfKind& circuits, std::size_t top);

// The circuits by several methods (study::find_circuits_by): for each model sizes, rank
// correlations and the first method's `top` parts as every method scores them.
std::string methods_text(const std::vector<study::CircuitsOfKind>& methods, std::size_t top);

// A task's circuits of every kind: sizes side by side.
std::string task_circuits_text(const study::TaskCircuits& found);

// "12", "none claimed", "not carried", "level not reached".
std::string size_text(const study::ModelCircuit& circuit);
// The effect with no part kept: "12.3 %"; "" where there is no circuit.
std::string none_kept_text(const study::ModelCircuit& circuit);
// "2.50x"; "" for the first model itself and where there is no ratio.
std::string ratio_text(const study::ModelCircuit& first, const study::ModelCircuit& circuit);

}  // namespace filigree::cli
