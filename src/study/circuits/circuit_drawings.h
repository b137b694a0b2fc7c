// What is drawn of circuits: the inputs of the figures and the Graphviz files, from circuits of
// models side by side.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "study/circuits/model_circuits.h"
#include "study/figures.h"

namespace filigree::study {

// The prompt that figures draw: the first that every model with a circuit answers, since one that a
// model fails shows what it does wrong.
struct ExamplePrompt {
  std::string text = {};    // of the clean prompt
  std::string chosen = {};  // "the first that both models answer", or that there is none
};
ExamplePrompt example_prompt(const CircuitsOfKind& circuits, std::span<const LoadedModel> models);

// Explained effect against parts kept, a chart a kind. Nullopt when no model has a circuit.
std::optional<figure::CircuitCurves> curves_of(std::span<const CircuitsOfKind> kinds);

// The circuits' heads on the example prompt, a panel a model, in order of importance. Runs
// `models`, those of the circuits in their order. Nullopt when no circuit has a head.
std::optional<figure::AttentionGrid> grid_of(const CircuitsOfKind& circuits,
                                             std::span<const LoadedModel> models);

// Edges that a drawing holds at most; the strongest are drawn.
inline constexpr std::size_t kMostDrawnEdges = 200;

// The circuits of edges, a panel a model. Nullopt when there is no edge to draw.
std::optional<figure::CircuitDrawing> drawing_of(const CircuitsOfKind& circuits);

// Every model's whole circuit of edges for Graphviz. Names have no ending and are fit for files.
struct DotFile {
  std::string name, text;
};
std::vector<DotFile> dots_of(const CircuitsOfKind& circuits);

// The name of a task or model as a part of a file's name: letters, digits, '.', '_' and '-'.
std::string file_part(const std::string& name);
// Of a task: of a file only its name, without folder and ending.
std::string task_file_part(const LoadedTask& task);

}  // namespace filigree::study
