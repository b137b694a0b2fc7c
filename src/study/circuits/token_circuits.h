// Circuits of attention edges drawn over one prompt, models side by side.
#pragma once

#include <optional>
#include <span>

#include "study/circuits/model_circuits.h"
#include "study/figures.h"

namespace filigree::study {

// MLPs are drawn where they matter: where one at one position is worth at least this share of the
// metric's difference between the clean and the corrupt prompt, by the gradient of the clean run.
inline constexpr double kMlpShare = 0.05;

// The kept edges of the first prompt of the first model that has a circuit, a panel a model that
// takes the prompt as the same tokens. Runs `models`, those of the circuits in their order, for the
// MLPs. Nullopt when the circuits are not of attention edges or there is no edge to draw.
std::optional<figure::TokenCircuit> token_circuit_of(const CircuitsOfKind& circuits,
                                                     std::span<const LoadedModel> models);

}  // namespace filigree::study
