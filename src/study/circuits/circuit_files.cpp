#include "filigree/study/circuits/circuit_files.h"

#include <fmt/format.h>

#include "filigree/base/atomic_file.h"
#include "filigree/base/error.h"
#include "filigree/base/strings.h"

namespace filigree::study {

void prepare_output(const CircuitOutput& output, const Context& context) {
  if (!has_figures())
    context.say("this program was built without figures; it writes JSON and Graphviz files only");
  std::error_code error;
  std::filesystem::create_directories(output.folder, error);
  if (error) fail("cannot create '{}': {}", printable(output.folder.string()), error.message());
}

std::vector<std::string> write_circuit_files(const CircuitsOfKind& circuits,
                                             std::span<const LoadedModel> models,
                                             const CircuitOutput& output, bool named_by_method) {
  std::vector<std::string> files;
  const SearchOptions& options = circuits[0].options;
  std::string stem = fmt::format("{}-{}", task_file_part(circuits[0].task),
                                 file_part(std::string(name_of(options.parts))));
  if (named_by_method) stem += fmt::format("-{}", method_name(options.parts, options.method));
  const auto add = [&](const std::string& ending) {
    files.push_back(stem + ending);
    return output.folder / files.back();
  };
  if (has_figures()) {
    const std::optional<figure::CircuitCurves> curves = curves_of(std::span(&circuits, 1));
    const std::optional<figure::AttentionGrid> grid = grid_of(circuits, models);
    const std::optional<figure::CircuitDrawing> drawing = drawing_of(circuits);
    for (const figure::Format format : output.formats) {
      const auto path = [&](const char* what) {
        return add(fmt::format("-{}.{}", what, name_of(format)));
      };
      if (curves) save_figure(&*curves, path("curves"), output.style);
      if (grid) save_figure(&*grid, path("maps"), output.style);
      if (drawing) save_figure(&*drawing, path("drawing"), output.style);
    }
  }
  for (const DotFile& dot : dots_of(circuits))
    write_file_atomically(add(fmt::format("-{}.dot", dot.name)), dot.text);
  write_file_atomically(add(".json"), to_json(circuits, Scores::kEvery).dump(1) + "\n");
  return files;
}

}  // namespace filigree::study
