#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "filigree/circuit_study.h"
#include "filigree/names.h"
#include "study/circuits/patch_progress.h"
#include "study/not_finite.h"

namespace filigree::study {
namespace {

SweepAxis axis_of(const PatchRequest& request, Site site) {
  return request.by.value_or(has_heads(site)            ? SweepAxis::kHead
                             : site == Site::kExpertOut ? SweepAxis::kExpert
                                                        : SweepAxis::kPosition);
}

// Leaves the prompts of the commonest length.
void keep_one_length(std::vector<TaskPrompt>& prompts) {
  std::map<std::int64_t, std::size_t> counts;
  for (const TaskPrompt& prompt : prompts) ++counts[prompt.length()];
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  const std::int64_t length = most->first;
  std::erase_if(prompts, [&](const TaskPrompt& prompt) { return prompt.length() != length; });
}

// Heads and experts as numbers; positions as the tokens that all prompts share, or else numbers.
std::vector<std::string> column_names(const PatchSweep& sweep, SweepAxis axis,
                                      const std::vector<TaskPrompt>& prompts,
                                      const Tokenizer& tokenizer) {
  std::vector<std::string> names;
  if (axis == SweepAxis::kPosition) {
    for (const TokenId id : common_tokens(prompts)) {
      const auto place = static_cast<std::int64_t>(names.size());
      names.push_back(id >= 0 && tokenizer.has_token(id)
                          ? tokenizer.token_text(id)
                          : std::to_string(sweep.from_end ? place - sweep.columns : place));
    }
    return names;
  }
  for (std::int64_t part = 0; part < sweep.columns; ++part) names.push_back(std::to_string(part));
  return names;
}

// The role that all prompts give a position, counted as the sweep counts them; "": none.
std::vector<std::string> column_roles(const PatchSweep& sweep,
                                      const std::vector<TaskPrompt>& prompts) {
  std::vector<std::string> roles;
  for (std::int64_t column = 0; column < sweep.columns; ++column) {
    const auto role_in = [&](const TaskPrompt& prompt) {
      const std::int64_t before = sweep.from_end ? prompt.length() - sweep.columns : 0;
      const auto at = static_cast<std::size_t>(before + column);
      return at < prompt.roles.size() ? prompt.roles[at] : std::string();
    };
    const std::string first = role_in(prompts[0]);
    const bool shared = std::all_of(prompts.begin(), prompts.end(), [&](const TaskPrompt& prompt) {
      return role_in(prompt) == first;
    });
    roles.push_back(shared ? first : "");
  }
  return roles;
}

SweptModel sweep_model(const PatchRequest& request, const LoadedModel& model,
                       const Context& context) {
  SweptModel swept;
  swept.model = model.name(), swept.label = model.label();
  swept.task = load_task(request.task, model, context);
  swept.prompts = swept.task.prompts.prompts;
  if (request.one_length) keep_one_length(swept.prompts);
  swept.check = check_ability(model, swept.prompts, swept.task.metric, context);
  if (!swept.check.corruption_matters) return swept;
  for (const Site site : request.sites) {
    SweepOptions options;
    options.site = site;
    options.axis = axis_of(request, site);
    options.direction = request.direction;
    options.patch.replacement = request.replacement;
    options.patch.metric = swept.task.metric;
    options.patch =
        watched(options.patch, fmt::format("{} {}", model.label(), name_of(site)), context);
    SweptSite one = {site, options.axis, sweep_patches(model.model(), swept.prompts, options), {}};
    std::vector<double> effects;
    for (const Estimate& effect : one.sweep.effects) effects.push_back(effect.mean);
    require_finite(effects, "the effect of patches", model, swept.prompts[0].clean);
    one.columns = column_names(one.sweep, one.axis, swept.prompts, model.tokenizer());
    if (one.axis == SweepAxis::kPosition) one.roles = column_roles(one.sweep, swept.prompts);
    swept.sites.push_back(std::move(one));
  }
  return swept;
}

Json site_json(const SweptSite& site) {
  Json effects = Json::array(), errors = Json::array();
  for (std::int64_t layer = 0; layer < site.sweep.layers; ++layer) {
    Json effect_row = Json::array(), error_row = Json::array();
    for (std::int64_t column = 0; column < site.sweep.columns; ++column) {
      effect_row.push_back(site.sweep.at(layer, column).mean);
      error_row.push_back(json_or_null(site.sweep.at(layer, column).error));
    }
    effects.push_back(effect_row);
    errors.push_back(error_row);
  }
  return {{"site", name_of(site.site)},
          {"by", name_of(site.axis)},
          {"from_end", site.sweep.from_end},
          {"columns", site.columns},
          {"roles", site.roles},
          {"clean", to_json(site.sweep.clean)},
          {"corrupt", to_json(site.sweep.corrupt)},
          {"effect", effects},
          {"standard_error", errors}};
}

figure::MapPanel panel_of(const SweptSite& site, std::string title) {
  figure::MapPanel panel;
  panel.title = std::move(title);
  panel.rows.name = "layer";
  for (std::int64_t layer = 0; layer < site.sweep.layers; ++layer)
    panel.rows.labels.push_back(std::to_string(layer));
  const bool positions = site.axis == SweepAxis::kPosition;
  panel.columns.name = site.axis == SweepAxis::kHead ? "head"
                       : !positions                  ? "expert"
                       : site.sweep.from_end         ? "position from the end"
                                                     : "position";
  panel.columns.labels = site.columns;
  for (std::size_t i = 0; i < site.roles.size(); ++i)
    if (!site.roles[i].empty()) panel.columns.labels[i] = site.roles[i];
  panel.columns.tokens = positions;
  for (const Estimate& effect : site.sweep.effects)
    panel.values.push_back(static_cast<float>(effect.mean));
  return panel;
}

}  // namespace

void check_request(const PatchRequest& request) {
  for (const Site site : request.sites) {
    if (site == Site::kEmbedding)
      throw RequestError("the embedding is of no layer; resid of layer 0 is the same place");
    if (axis_of(request, site) == SweepAxis::kHead && !has_heads(site))
      throw RequestError(
          fmt::format("{} has no heads; sweep it by layer and position", name_of(site)));
    if (axis_of(request, site) == SweepAxis::kExpert && site != Site::kExpertOut)
      throw RequestError(
          fmt::format("{} has no experts; sweep it by layer and position", name_of(site)));
  }
  if (request.direction == PatchDirection::kDenoising &&
      request.replacement != Replacement::kCorrupt)
    throw RequestError(
        fmt::format("denoising puts clean values into corrupt runs; {} values go with noising",
                    name_of(request.replacement)));
  if (request.task.lines.empty()) find_task(request.task.name);
}

std::string SweptSite::place(std::size_t cell) const {
  const std::size_t layer = cell / columns.size(), index = cell % columns.size();
  const std::string& column = columns[index];
  if (axis == SweepAxis::kHead) return fmt::format("L{}H{}", layer, column);
  if (axis == SweepAxis::kExpert) return fmt::format("L{}E{}", layer, column);
  const std::string number =
      std::to_string(static_cast<std::int64_t>(index) - (sweep.from_end ? sweep.columns : 0));
  std::string text = fmt::format("L{} position {}", layer, number);
  if (index < roles.size() && !roles[index].empty()) text += " " + printable(roles[index]);
  return number == column ? text : text + " '" + printable(column) + "'";
}

std::vector<std::size_t> SweptSite::order() const {
  std::vector<std::size_t> cells(sweep.effects.size());
  std::iota(cells.begin(), cells.end(), std::size_t{0});
  std::stable_sort(cells.begin(), cells.end(), [&](std::size_t a, std::size_t b) {
    return std::abs(sweep.effects[a].mean) > std::abs(sweep.effects[b].mean);
  });
  return cells;
}

PatchResult run(const PatchRequest& request, Models models, const Context& context) {
  check_request(request);
  PatchResult result = {request, {}};
  result.request.task = choose_text(request.task, models);
  for (const LoadedModel& model : models)
    result.models.push_back(sweep_model(result.request, model, context));
  return result;
}

Json to_json(const PatchResult& result) {
  const LoadedTask& task = result.models[0].task;
  Json models = Json::array();
  for (const SweptModel& model : result.models) {
    Json sites = Json::array();
    for (const SweptSite& site : model.sites) sites.push_back(site_json(site));
    models.push_back({{"model", model.model},
                      {"fit", fit_json(model.task.prompts)},
                      {"prompts", model.prompts.size()},
                      {"check", to_json(model.check)},
                      {"sites", sites}});
  }
  return {{"task", task.prompts.task},
          {"corruption", task.prompts.corruption},
          {"metric", name_of(task.metric)},
          {"direction", name_of(result.request.direction)},
          {"replacement", name_of(result.request.replacement)},
          {"models", models}};
}

std::optional<figure::LabelledMaps> figure_of(const PatchResult& result) {
  const PatchRequest& request = result.request;
  const LoadedTask& task = result.models[0].task;
  const bool noising = request.direction == PatchDirection::kNoising;
  std::vector<std::string_view> names;
  for (const Site site : request.sites) names.push_back(name_of(site));
  figure::LabelledMaps maps;
  maps.title = fmt::format("Patching {}: {}", fmt::join(names, ", "), printable(task.prompts.task));
  maps.scale_label = noising ? "share of the effect lost" : "share of the effect restored";
  for (std::size_t s = 0; s < names.size(); ++s)
    for (const SweptModel& model : result.models)
      if (!model.sites.empty())
        maps.panels.push_back(
            panel_of(model.sites[s], names.size() > 1 ? fmt::format("{}: {}", model.label, names[s])
                                                      : model.label));
  if (maps.panels.empty()) return std::nullopt;
  // A scale to 1 is easier to read than one to 0.97.
  float most = 0;
  for (const figure::MapPanel& panel : maps.panels)
    for (const float value : panel.values) most = std::max(most, std::abs(value));
  if (most > 0.5f && most <= 1.02f) maps.end = 1;
  maps.caption = fmt::format(
      "Corruption {}, {}, {}: {} 0 does not matter, 1 decides alone.", task.prompts.corruption,
      name_of(task.metric), counted(result.models[0].prompts.size(), "prompt"),
      noising ? fmt::format("clean runs in which the place takes its {} value.",
                            name_of(request.replacement))
              : std::string("corrupt runs in which the place takes its clean value."));
  return maps;
}

Knobs knobs_of(PatchRequest& request) {
  Knobs knobs;
  knobs.section("Sweep");
  knobs.choice({.name = "by",
                .what = "rows and columns",
                .otherwise = "layer-head where the site has heads, layer-expert of expert-out"},
               request.by);
  knobs.choice({.name = "direction",
                .what = "corrupt values into clean runs, or clean ones into corrupt runs"},
               request.direction);
  knobs.flag({.name = "one-length",
              .what = "keep the prompts of the commonest length only, so that positions mean the "
                      "same"},
             request.one_length);
  knobs.add(knobs_of(request.task));
  return knobs;
}

}  // namespace filigree::study
