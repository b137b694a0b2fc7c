// What the grid of circuits' heads says beyond the maps: which edge of each head the task needs
// most, and which heads the models share.
#pragma once

#include <string>

#include "filigree/circuit_study.h"
#include "filigree/study_figures.h"

namespace filigree::study {

// Frames the cell of each head that the task needs most on the prompt of this text, by the gradient
// of the clean run against a cell of zero, and names it by roles or tokens: "END <- IO". Does
// nothing where the model's task does not have the prompt or its metric no gradient.
void mark_strong_edges(figure::GridPanel& panel, const ModelCircuit& circuit, const Model& model,
                       const std::string& text);

// Puts the heads that all panels have first, in the order of the first panel, so that a head stands
// at the same place in each. Returns how many there are; 0 for a single panel.
std::size_t align_heads(figure::AttentionGrid& grid);

}  // namespace filigree::study
