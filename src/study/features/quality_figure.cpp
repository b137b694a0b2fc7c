#include <fmt/format.h>

#include "filigree/feature_study.h"
#include "filigree/names.h"

namespace filigree::study {
namespace {

constexpr int kDensitySteps = 4;  // of a power of ten

std::string caption_of(const EvaluatedFeatures& model) {
  const FeatureQuality& quality = model.quality;
  return fmt::format(
      "{}: NMSE {:.3f}, {:.1f} of {} features of a layer active. With all MLPs replaced the loss "
      "goes from {:.2f} to {:.2f}: {} recovered, top-1 agreement {}.",
      model.label, quality.nmse(), quality.l0(),
      with_thousands(static_cast<std::uint64_t>(model.shape.features)), quality.loss,
      quality.all.loss, percent(quality.recovered()), percent(quality.all.agreement));
}

}  // namespace

void save_quality_figure(const std::vector<EvaluatedFeatures>& models,
                         const std::filesystem::path& path, const FigureStyle& style) {
  figure::TranscoderQuality drawn = {.title = "How well features stand in for MLPs",
                                     .density_steps = kDensitySteps};
  for (const EvaluatedFeatures& model : models) {
    const FeatureQuality& quality = model.quality;
    figure::MeasuredTranscoder one = {.name = model.label};
    for (const LayerQuality& layer : quality.layers) {
      one.nmse.push_back(layer.nmse);
      one.active.push_back(layer.l0);
      one.dead.push_back(layer.dead());
      one.dense.push_back(layer.dense());
      if (quality.layers_alone) one.recovered.push_back(layer.alone.recovered(quality.loss));
    }
    one.density = density_histogram(quality, kDensitySteps);
    drawn.captions.push_back(caption_of(model));
    drawn.transcoders.push_back(std::move(one));
  }
  drawn.captions.push_back(
      "Dead features are active at no token of the text, dense ones at more than a tenth; the "
      "histogram is of all that are active, all layers together.");
  save_figure(&drawn, path, style);
}

}  // namespace filigree::study
