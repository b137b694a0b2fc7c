// Stands for drawn_figures.cpp in a build without Cairo.
#include "filigree/error.h"
#include "filigree/study_figures.h"

namespace filigree::study {
namespace {

[[noreturn]] void left_out() {
  fail(
      "this program was built without figures; install libcairo2-dev and libpango1.0-dev and "
      "build it again");
}

}  // namespace

bool has_figures() { return false; }
void check_figures() { left_out(); }

void save_figure(const FigureInput&, const std::filesystem::path&, const FigureStyle&) {
  left_out();
}
std::string figure_svg(const FigureInput&, const FigureStyle&) { left_out(); }
figure::GridHead grid_head(const HeadId&, std::span<const float>, std::int64_t,
                           const figure::ColorScale&) {
  left_out();
}

}  // namespace filigree::study
