// Circuits as a folder of figures, Graphviz files and JSON.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "filigree/circuit_study.h"
#include "study/output.h"

namespace filigree::study {

struct CircuitOutput {
  std::filesystem::path folder = {};  // or, by its ending, the file of one figure
  std::vector<figure::Format> formats = {figure::Format::kSvg, figure::Format::kPng};
  FigureStyle style = {};
  std::size_t cells_of_prompt = kCellsOfPrompt;  // in the JSON
};

// Before the work: makes and locks the folder, to be kept until all is written; null where one
// figure is all that is wanted, and on processes that write nothing. A build without figures says
// what it will write nevertheless, and throws Error for the one figure.
[[nodiscard]] std::unique_ptr<OutputFolder> prepare_output(const CircuitOutput& output,
                                                           const Context& context);

// Named after task and kind of part (and the method, where asked), so that one folder takes
// several: curves, maps of the heads, the drawing and a Graphviz file a model of edges, tables, and
// the JSON of the result. Runs `models`, those of the circuits, for the maps. Returns the names,
// without the folder. A build without figures writes what needs none. A file gets the figure that
// shows the circuits: of edges their drawing, of heads their maps; none is written, or named, where
// there is no circuit.
std::vector<std::string> write_circuit_files(const CircuitsOfKind& circuits, Models models,
                                             const CircuitOutput& output,
                                             bool named_by_method = false);

}  // namespace filigree::study
