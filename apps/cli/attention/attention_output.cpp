#include "apps/cli/attention/attention_output.h"

#include <fmt/format.h>

#include "apps/cli/program/input.h"
#include "filigree/analyze/maps/average.h"
#include "filigree/base/version.h"

namespace filigree::cli {

std::unique_ptr<MapFile> open_output(const OutputPlan& plan, const std::vector<HeadId>& heads,
                                     const std::vector<Prompt>& prompts) {
  MapFileLayout layout;
  layout.kind = plan.kind;
  layout.heads = heads;
  layout.about["filigree"] = version_string();
  layout.about["models"] = plan.models;
  layout.about["prompts"] = prompts.size();
  for (std::size_t m = 0; m < plan.models.size(); ++m) {
    if (plan.average) {
      layout.series.push_back({fmt::format("model{}.mean", m), common_length(prompts), {}});
      continue;
    }
    for (std::size_t p = 0; p < prompts.size(); ++p)
      layout.series.push_back({fmt::format("model{}.prompt{}", m, p),
                               static_cast<std::int64_t>(prompts[p].ids.size()), prompts[p]});
  }
  return MapFile::create(plan.path, std::move(layout));
}

void fill_grid(MapGrid& grid, std::size_t panel, const std::string& model,
               const std::vector<HeadId>& heads, const std::vector<Prompt>& prompts, MapKind kind,
               bool average) {
  const auto loaded = load_model(model_folder(model), {.warn_about_values = false});
  if (average) {
    const std::int64_t length = common_length(prompts);
    average_maps(*loaded, prompts, {.heads = heads, .kind = kind},
                 [&](std::size_t slot, std::span<const float> mean) {
                   grid.add(panel, heads[slot], mean, length);
                 });
    return;
  }
  std::vector<float> map;
  capture_maps(*loaded, std::span(prompts.data(), 1), CaptureOptions::of(heads, kind),
               [&](std::span<const HeadMap> maps) {
                 for (const HeadMap& head : maps) {
                   map.resize(static_cast<std::size_t>(head.length * head.length));
                   fill_map(head, kind, map);
                   grid.add(panel, head.head, map, head.length);
                 }
               });
}

}  // namespace filigree::cli
