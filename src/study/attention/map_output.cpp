#include "study/attention/map_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "filigree/version.h"

namespace filigree::study {
namespace {

std::vector<std::string> labels_of(Models models) {
  std::vector<std::string> labels;
  for (const LoadedModel& model : models) labels.push_back(model.label());
  return labels;
}

}  // namespace

std::unique_ptr<MapFile> open_map_file(const std::filesystem::path& path, MapKind kind,
                                       bool average, Models models,
                                       const std::vector<HeadId>& heads,
                                       const std::vector<Prompt>& prompts,
                                       const Interventions& interventions) {
  MapFileLayout layout;
  layout.kind = kind;
  layout.heads = heads;
  layout.about["filigree"] = version_string();
  layout.about["models"] = Json::array();
  for (const LoadedModel& model : models) layout.about["models"].push_back(model.name());
  layout.about["prompts"] = prompts.size();
  if (!interventions.empty()) layout.about["interventions"] = to_json(interventions);
  for (std::size_t m = 0; m < models.size(); ++m) {
    if (average) {
      layout.series.push_back({fmt::format("model{}.mean", m), common_length(prompts), {}});
      continue;
    }
    for (std::size_t p = 0; p < prompts.size(); ++p)
      layout.series.push_back({fmt::format("model{}.prompt{}", m, p),
                               static_cast<std::int64_t>(prompts[p].ids.size()), prompts[p]});
  }
  return MapFile::create(path, std::move(layout));
}

MapOutput::MapOutput(MapOutputOptions options, Models models, const std::vector<HeadId>& heads,
                     const std::vector<Prompt>& prompts)
    : options_(std::move(options)),
      heads_(heads),
      prompts_(prompts),
      grid_(empty_grid(options_.kind, labels_of(models))),
      heads_a_layer_(models[0].config().heads) {
  for (const std::filesystem::path& file : options_.files) {
    if (!is_figure_file(file)) {
      data_.push_back(open_map_file(file, options_.kind, options_.average, models, heads, prompts,
                                    options_.interventions));
      continue;
    }
    if (!options_.average && prompts.size() > 1)
      throw RequestError(
          fmt::format("a figure shows one prompt, or the mean of {}; a file of data holds them all",
                      prompts.size()));
    if (options_.average) common_length(prompts);
    figures_.push_back(file);
  }
}

void MapOutput::add(std::size_t model, const HeadId& head, std::span<const float> map,
                    std::int64_t length) {
  for (const std::unique_ptr<MapFile>& file : data_) file->add(map);
  if (!figures_.empty())
    grid_.panels[model].heads.push_back(figure::grid_head(head, map, length, grid_.scale));
}

void MapOutput::watch(std::size_t model, AnalysisPlan& plan) {
  if (options_.files.empty()) return;
  plan.kind = options_.kind;
  if (options_.average) {
    plan.mean = [this, model](std::size_t slot, std::span<const float> mean) {
      add(model, heads_[slot], mean, common_length(prompts_));
    };
    return;
  }
  plan.each = [this, model](std::span<const HeadMap> heads) {
    for (const HeadMap& head : heads) {
      map_.resize(static_cast<std::size_t>(head.length * head.length));
      fill_map(head, options_.kind, map_);
      add(model, head.head, map_, head.length);
    }
  };
}

void MapOutput::finish(std::span<const AnalysedModel> models) {
  for (const std::unique_ptr<MapFile>& file : data_) file->commit();
  if (figures_.empty()) return;
  std::vector<std::size_t> order(heads_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto place = [&](std::size_t slot) {
    return std::find(options_.order.begin(), options_.order.end(), heads_[slot]);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return place(a) < place(b); });
  std::vector<HeadId> shown;
  for (const std::size_t slot : order) shown.push_back(heads_[slot]);
  for (std::size_t m = 0; m < models.size(); ++m) arrange_panel(grid_, m, models[m].roles, order);
  grid_.title = options_.grid.title;
  grid_.width = options_.grid.width;
  grid_.columns =
      options_.grid.columns > 0 ? options_.grid.columns : columns_of_layers(shown, heads_a_layer_);
  if (options_.average) {
    grid_.prompt = fmt::format("Mean over {} prompts.", prompts_.size());
  } else {
    grid_.tokens = prompts_[0].tokens;
    grid_.prompt = fmt::format("Prompt: {}", fmt::join(prompts_[0].tokens, ""));
  }
  if (!options_.interventions.empty())
    grid_.metric = fmt::format("Changed: {}.", text_of(options_.interventions));
  for (const std::filesystem::path& file : figures_) save_figure(&grid_, file, options_.style);
}

}  // namespace filigree::study
