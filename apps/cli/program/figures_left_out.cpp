// Stands for attention_figures.cpp in a build without Cairo.
#include "apps/cli/attention/attention_figures.h"
#include "filigree/base/error.h"

namespace filigree::cli {
namespace {

[[noreturn]] void left_out() {
  fail(
      "this program was built without figures; install libcairo2-dev and libpango1.0-dev and "
      "build it again");
}

}  // namespace

struct MapGrid::Maps {};
MapGrid::MapGrid(MapKind, std::vector<std::string>) { left_out(); }
MapGrid::~MapGrid() = default;
void MapGrid::add(std::size_t, const HeadId&, std::span<const float>, std::int64_t) { left_out(); }
void MapGrid::write(const std::filesystem::path&, const Text&, const FigureStyle&,
                    const std::vector<std::vector<HeadRole>>&,
                    const std::vector<std::vector<std::size_t>>&) const {
  left_out();
}
void write_head_strip(const StripInput&, const std::filesystem::path&, const FigureStyle&) {
  left_out();
}
void write_correlation_map(const std::vector<AnalysedModel>&, const std::filesystem::path&,
                           const FigureStyle&) {
  left_out();
}
void write_scatter_matrix(const std::vector<AnalysedModel>&, const std::vector<std::size_t>&,
                          const std::filesystem::path&, const FigureStyle&, std::uint64_t) {
  left_out();
}
void write_statistics_bars(const std::vector<AnalysedModel>&, const std::vector<ComparedStatistic>&,
                           const std::filesystem::path&, const FigureStyle&) {
  left_out();
}
void write_training_curves(const std::vector<CurveInput>&, const std::filesystem::path&,
                           const FigureStyle&) {
  left_out();
}

}  // namespace filigree::cli
