// Stands for circuit_figures.cpp in a build without Cairo.
#include "apps/cli/circuit_figures.h"
#include "base/error.h"

namespace filigree::cli {
namespace {

[[noreturn]] void left_out() {
  fail(
      "this program was built without figures; install libcairo2-dev and libpango1.0-dev and "
      "build it again");
}

}  // namespace

void write_labelled_maps(const figure::LabelledMaps&, const std::filesystem::path&,
                         const FigureStyle&) {
  left_out();
}
void write_circuit_curves(const figure::CircuitCurves&, const std::filesystem::path&,
                          const FigureStyle&) {
  left_out();
}
void write_circuit_graph(const figure::CircuitDrawing&, const std::filesystem::path&,
                         const FigureStyle&) {
  left_out();
}
void write_attention_grid(const figure::AttentionGrid&, const std::filesystem::path&,
                          const FigureStyle&) {
  left_out();
}
std::string circuit_curves_svg(const figure::CircuitCurves&, const FigureStyle&) { left_out(); }
std::string circuit_graph_svg(const figure::CircuitDrawing&, const FigureStyle&) { left_out(); }
std::string attention_grid_svg(const figure::AttentionGrid&, const FigureStyle&) { left_out(); }
figure::GridHead map_of_head(const HeadId&, std::span<const float>, std::int64_t) { left_out(); }

}  // namespace filigree::cli
