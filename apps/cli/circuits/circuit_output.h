// The files of `filigree circuit --out`.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/circuits/circuit_drawings.h"

namespace filigree::cli {

struct CircuitOutput {
  std::string folder;
  std::vector<std::string> formats = {"svg", "png"};
  FigureStyle style;
};

// Before the work: makes the folder and checks the style. A program without figures says on stderr
// what it will write nevertheless.
void prepare_output(const CircuitOutput& output, const Session& session);

// Named after task and kind of part, so that one folder takes several: curves, maps of the heads,
// the drawing and a Graphviz file a model of edges, and `json`. Returns the names, without the
// folder. A program without figures writes what needs none.
std::vector<std::string> write_circuit_files(const CircuitsOfKind& circuits, const Json& json,
                                             const CircuitOutput& output);

// The names for the terminal, "" for none.
std::string files_text(const CircuitOutput& output, const std::vector<std::string>& files);

}  // namespace filigree::cli
