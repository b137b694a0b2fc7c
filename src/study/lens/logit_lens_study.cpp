#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "filigree/lens_study.h"
#include "filigree/names.h"
#include "study/not_finite.h"

namespace filigree::study {
namespace {

LensOfModel look(const LensRequest& request, const LoadedModel& model, const Context& context) {
  LensOfModel found;
  found.model = model.name(), found.label = model.label();
  found.ids = prompt_tokens(model, request.prompt, request.chat);
  LensOptions options;
  options.top = std::max<std::int64_t>(request.top, 1), options.middle = request.middle;
  if (!request.token.empty())
    found.token = options.token = single_token(model, request.token, "the token");
  AppliedInterventions changes(model.model(), for_text(request.interventions, model, found.ids));
  options.interventions = &changes;
  std::unique_ptr<WorkReport> report;
  options.progress = [&](std::size_t done, std::size_t total) {
    context.throw_if_stopped();
    if (!report)
      report = context.begin({model.label(), "layers", static_cast<std::int64_t>(total)});
    report->update(static_cast<std::int64_t>(done));
    if (done == total) report->finish();
  };
  found.lens = logit_lens(model.model(), found.ids, options);
  std::vector<double> numbers;
  for (const LensCell& cell : found.lens.cells) {
    numbers.push_back(cell.top[0].probability);
    numbers.push_back(cell.log_probability);
  }
  require_finite(numbers, "the lens", model, found.ids);
  const auto show = [&](TokenId id) { found.shown.add(model.tokenizer(), id); };
  for (const TokenId id : found.ids) show(id);
  if (found.token) show(*found.token);
  for (const LensCell& cell : found.lens.cells)
    for (const LensToken& token : cell.top) show(token.id);
  return found;
}

Json cell_json(const LensOfModel& found, const LensCell& cell, std::size_t top) {
  Json words = Json::array();
  for (std::size_t i = 0; i < std::min(top, cell.top.size()); ++i)
    words.push_back({{"token", found.shown[cell.top[i].id]},
                     {"id", cell.top[i].id},
                     {"probability", cell.top[i].probability}});
  const bool ranked = cell.rank >= 0;
  return {{"top", words},
          {"rank", ranked ? Json(cell.rank + 1) : Json()},
          {"log_probability", ranked ? Json(cell.log_probability) : Json()}};
}

Json model_json(const LensOfModel& found, std::size_t top) {
  Json points = Json::array();
  for (std::size_t p = 0; p < found.lens.points.size(); ++p) {
    Json positions = Json::array();
    for (std::int64_t t = 0; t < found.lens.positions; ++t)
      positions.push_back(cell_json(found, found.lens.at(p, t), top));
    points.push_back({{"point", name_of(found.lens.points[p])},
                      {"tap", tap_name(found.lens.points[p])},
                      {"positions", positions}});
  }
  return {{"model", found.model},
          {"tokens", found.tokens()},
          {"ids", found.ids},
          {"token", found.token ? Json(found.shown[*found.token]) : Json()},
          {"points", points}};
}

std::string row_label(const LensPoint& point) {
  switch (point.place) {
    case LensPlace::kBefore: return "embedding";
    case LensPlace::kMiddle: return fmt::format("{} attention", point.layer);
    case LensPlace::kAfter: break;
  }
  return std::to_string(point.layer);
}

figure::MapPanel panel_of(const LensOfModel& found) {
  figure::MapPanel panel;
  panel.rows.name = "stream after";
  panel.columns.name = "token read last";
  panel.columns.labels = found.tokens();
  panel.columns.tokens = true;
  // The last layer on top, as the stream rises.
  for (std::size_t p = found.lens.points.size(); p-- > 0;) {
    panel.rows.labels.push_back(row_label(found.lens.points[p]));
    for (std::int64_t t = 0; t < found.lens.positions; ++t) {
      const LensCell& cell = found.lens.at(p, t);
      panel.values.push_back(static_cast<float>(found.token ? std::exp(cell.log_probability)
                                                            : cell.top[0].probability));
      panel.words.push_back(found.shown[cell.top[0].id]);
    }
  }
  return panel;
}

}  // namespace

std::vector<std::string> LensOfModel::tokens() const {
  std::vector<std::string> texts;
  for (const TokenId id : ids) texts.push_back(shown[id]);
  return texts;
}

LensResult run(const LensRequest& request, Models models, const Context& context) {
  LensResult result = {request, {}};
  for (const LoadedModel& model : models) result.models.push_back(look(request, model, context));
  return result;
}

Json to_json(const LensResult& result) {
  Json models = Json::array();
  for (const LensOfModel& found : result.models)
    models.push_back(model_json(found, static_cast<std::size_t>(result.request.top)));
  return {{"prompt", shown_prompt(result.request.prompt)},
          {"interventions", to_json(result.request.interventions)},
          {"models", models}};
}

figure::LabelledMaps figure_of(const LensResult& result) {
  figure::LabelledMaps maps;
  maps.title = "Logit lens";
  maps.kind = figure::ScaleKind::kMagnitude;
  maps.end = 1;
  maps.scale_label = result.request.token.empty()
                         ? "probability of the likeliest token"
                         : fmt::format("probability of '{}'", printable(result.request.token));
  for (const LensOfModel& found : result.models) {
    maps.panels.push_back(panel_of(found));
    if (result.models.size() > 1) maps.panels.back().title = found.label;
  }
  maps.caption = "In each cell the likeliest next token, were the stream read out there.";
  if (!result.request.interventions.empty())
    maps.caption += fmt::format(" Changed: {}.", text_of(result.request.interventions));
  return maps;
}

}  // namespace filigree::study
