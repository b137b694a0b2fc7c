#include "study/circuits/circuit_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/atomic_file.h"
#include "filigree/circuit_study.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "study/circuits/circuit_tables.h"

namespace filigree::study {

namespace {

constexpr std::size_t kPartsOfPaper = 20;  // of each model; papers have no room for thousands

bool save_one_figure(const CircuitsOfKind& circuits, Models models, const CircuitOutput& output) {
  const auto saved = [&](const auto& figure) {
    if (figure) save_figure(&*figure, output.folder, output.style);
    return figure.has_value();
  };
  return saved(token_circuit_of(circuits, models)) || saved(drawing_of(circuits)) ||
         saved(grid_of(circuits, models));
}

}  // namespace

std::unique_ptr<OutputFolder> prepare_output(const CircuitOutput& output, const Context& context) {
  if (is_figure_file(output.folder)) {
    check_figure_file(output.folder);
    return nullptr;
  }
  return open_output(output.folder, context);
}

std::vector<std::string> write_circuit_files(const CircuitsOfKind& circuits, Models models,
                                             const CircuitOutput& output, bool named_by_method) {
  std::vector<std::string> files;
  if (is_figure_file(output.folder)) {
    if (save_one_figure(circuits, models, output))
      files.push_back(output.folder.filename().string());
    return files;
  }
  const SearchOptions& options = circuits[0].options;
  std::string stem = fmt::format("{}-{}", task_file_part(circuits[0].task),
                                 file_part(std::string(name_of(options.parts))));
  if (named_by_method) stem += fmt::format("-{}", method_name(options.parts, options.method));
  const auto add = [&](const std::string& ending) {
    files.push_back(stem + ending);
    return output.folder / files.back();
  };
  const std::optional<figure::CircuitCurves> curves = curves_of(std::span(&circuits, 1));
  const std::optional<figure::AttentionGrid> grid = grid_of(circuits, models);
  const std::optional<figure::CircuitDrawing> drawing = drawing_of(circuits);
  const std::optional<figure::TokenCircuit> tokens = token_circuit_of(circuits, models);
  for (const figure::Format format : output.formats) {
    const auto path = [&](const char* what) {
      return add(fmt::format("-{}.{}", what, name_of(format)));
    };
    if (curves) save_figure(&*curves, path("curves"), output.style);
    if (grid) save_figure(&*grid, path("maps"), output.style);
    if (drawing) save_figure(&*drawing, path("drawing"), output.style);
    if (tokens) save_figure(&*tokens, path("drawing"), output.style);
  }
  for (const DotFile& dot : dots_of(circuits))
    write_file_atomically(add(fmt::format("-{}.dot", dot.name)), dot.text);
  if (std::any_of(circuits.begin(), circuits.end(),
                  [](const ModelCircuit& circuit) { return circuit.found.has_value(); })) {
    const DataTable sizes = sizes_table_of(std::span(&circuits, 1));
    write_file_atomically(add("-sizes.csv"), csv_of(sizes));
    write_file_atomically(add("-sizes.tex"), latex_of(sizes));
    write_file_atomically(add("-parts.csv"), csv_of(parts_table_of(circuits, 0)));
    write_file_atomically(add("-parts.tex"), latex_of(parts_table_of(circuits, kPartsOfPaper)));
  }
  write_file_atomically(add(".json"),
                        to_json(circuits, Scores::kEvery, output.cells_of_prompt).dump(1) + "\n");
  return files;
}

}  // namespace filigree::study
