#include "apps/cli/circuits/circuit_output.h"

#include <fmt/format.h>

#include <algorithm>

#include "filigree/base/atomic_file.h"
#include "filigree/base/error.h"
#include "filigree/base/strings.h"

namespace filigree::cli {

namespace fs = std::filesystem;

void prepare_output(const CircuitOutput& output, const Session& session) {
  if (has_figures())
    check_figures(output.style);
  else
    session.note("this program was built without figures; it writes JSON and Graphviz files only");
  std::error_code error;
  fs::create_directories(output.folder, error);
  if (error) fail("cannot create '{}': {}", printable(output.folder), error.message());
}

std::vector<std::string> write_circuit_files(const CircuitsOfKind& circuits, const Json& json,
                                             const CircuitOutput& output) {
  std::vector<std::string> files;
  const std::string stem = fmt::format("{}-{}", task_file_part(circuits[0].task),
                                       file_part(std::string(name_of(circuits[0].options.parts))));
  const auto add = [&](const std::string& ending) {
    files.push_back(stem + ending);
    return fs::path(output.folder) / files.back();
  };
  if (has_figures()) {
    const std::optional<figure::CircuitCurves> curves = curves_of(std::span(&circuits, 1));
    const std::optional<figure::AttentionGrid> grid = grid_of(circuits);
    const std::optional<figure::CircuitDrawing> drawing = drawing_of(circuits);
    for (const std::string& format : output.formats) {
      if (curves) write_circuit_curves(*curves, add("-curves." + format), output.style);
      if (grid) write_attention_grid(*grid, add("-maps." + format), output.style);
      if (drawing) write_circuit_graph(*drawing, add("-drawing." + format), output.style);
    }
  }
  for (const DotFile& dot : dots_of(circuits))
    write_file_atomically(add(fmt::format("-{}.dot", dot.name)), dot.text);
  write_file_atomically(add(".json"), json.dump(1) + "\n");
  return files;
}

std::string files_text(const CircuitOutput& output, const std::vector<std::string>& files) {
  if (files.empty()) return "";
  std::string text = fmt::format("\n{} file{} in {}\n", files.size(), files.size() == 1 ? "" : "s",
                                 printable(output.folder));
  for (const std::string& file : files) text += "  " + file + "\n";
  return text;
}

}  // namespace filigree::cli
