// filigree patch: a patch at every layer and head, or every layer and position, as a heat map.
#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "apps/cli/circuits/task_options.h"
#include "apps/cli/circuits/task_text.h"
#include "apps/cli/commands.h"
#include "apps/cli/program/figure_options.h"
#include "apps/cli/program/input.h"
#include "apps/cli/program/program.h"
#include "apps/cli/program/table.h"
#include "filigree/analyze/lens/patch_sweep.h"
#include "filigree/base/error.h"
#include "filigree/base/strings.h"
#include "filigree/study/circuits/patch_progress.h"
#include "filigree/study/circuits/task_selection.h"

namespace filigree::cli {

using study::LoadedTask, study::TaskSelection, study::FigureStyle;

namespace {

struct PatchCommand {
  std::vector<std::string> models;
  TaskSelection selection;
  std::vector<std::string> sites = {"z"};
  std::string by;
  std::string direction = "noising";
  std::string replacement = "corrupt";
  bool one_length = false;
  std::int64_t top = 10;
  std::string figure;
  FigureStyle style;
};

struct NamedSite {
  const char* name;
  Site site;
};

// As the option spells them; the first of a site's names is the one that is shown.
constexpr NamedSite kSites[] = {
    {"resid", Site::kResidual},
    {"resid-mid", Site::kResidualMid},
    {"attn-out", Site::kAttentionOut},
    {"mlp-out", Site::kMlpOut},
    {"z", Site::kZ},
    {"q", Site::kQuery},
    {"k", Site::kKey},
    {"v", Site::kValue},
    {"pattern", Site::kPattern},
};

Site site_by_name(const std::string& name) {
  std::string known;
  for (const NamedSite& site : kSites) {
    if (site.name == name) return site.site;
    known += (known.empty() ? "" : ", ") + std::string(site.name);
  }
  throw UsageError(fmt::format("--site '{}' is none of {}", printable(name), known));
}

// One site of one model.
struct SweptSite {
  std::string site;
  PatchSweep sweep;
  std::vector<std::string> columns;  // names
};

struct SweptModel {
  std::string model, label;
  LoadedTask task;
  std::string fit_text;  // what became of the prompts
  TaskCheck check;
  std::vector<SweptSite> sites;  // none when there is no effect to share out
};

SweepOptions sweep_options(const PatchCommand& command, const std::string& site) {
  SweepOptions options;
  options.site = site_by_name(site);
  const bool heads = command.by.empty() ? has_heads(options.site) : command.by == "layer-head";
  options.axis = heads ? SweepAxis::kHead : SweepAxis::kPosition;
  options.direction =
      command.direction == "denoising" ? PatchDirection::kDenoising : PatchDirection::kNoising;
  options.patch.replacement = parse_name<Replacement>(command.replacement, "replacement");
  if (options.axis == SweepAxis::kHead && !has_heads(options.site))
    throw UsageError(fmt::format("--site {} has no heads; use --by layer-position", site));
  return options;
}

// Heads as numbers; positions as the tokens that all prompts share, or else numbers.
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
  for (std::int64_t head = 0; head < sweep.columns; ++head) names.push_back(std::to_string(head));
  return names;
}

// Leaves the prompts of the commonest length, the shorter of equals.
void keep_one_length(std::vector<TaskPrompt>& prompts) {
  std::map<std::int64_t, std::size_t> counts;
  for (const TaskPrompt& prompt : prompts) ++counts[prompt.length()];
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  const std::int64_t length = most->first;
  std::erase_if(prompts, [&](const TaskPrompt& prompt) { return prompt.length() != length; });
}

SweptModel sweep_model(const std::string& name, const std::string& label,
                       const PatchCommand& command, const Session& session) {
  const Tokenizer tokenizer = open_tokenizer(model_folder(name).string());
  const ModelConfig config = read_model_config(model_folder(name));
  SweptModel swept;
  swept.model = name, swept.label = label;
  swept.task = study::load_task(command.selection, tokenizer, &config, session.options().seed);
  swept.fit_text = dropped_text(swept.task.prompts);
  std::vector<TaskPrompt>& prompts = swept.task.prompts.prompts;
  if (const std::size_t all = prompts.size(); command.one_length) {
    keep_one_length(prompts);
    swept.fit_text += fmt::format("  {} of {} have the commonest length, {} tokens, and are kept\n",
                                  prompts.size(), all, prompts[0].length());
  }
  const study::Context context = session.context();
  const std::unique_ptr<Model> model =
      load_model(model_folder(name), {.placement = session.placement()});
  swept.check = check_task(
      score(*model, prompts, swept.task.metric, [](std::size_t) { throw_if_interrupted(); }),
      prompts);
  if (!swept.check.corruption_matters) return swept;
  for (const std::string& site : command.sites) {
    SweepOptions options = sweep_options(command, site);
    options.patch.metric = swept.task.metric;
    options.patch = study::watched(options.patch, fmt::format("{} {}", label, site), context);
    SweptSite one = {site, sweep_patches(*model, prompts, options), {}};
    one.columns = column_names(one.sweep, options.axis, prompts, tokenizer);
    swept.sites.push_back(std::move(one));
  }
  return swept;
}

std::string_view axis_name(const PatchCommand& command, const std::string& site) {
  return name_of(sweep_options(command, site).axis);
}

bool by_head(const PatchCommand& command, const std::string& site) {
  return sweep_options(command, site).axis == SweepAxis::kHead;
}

std::string place_name(const PatchCommand& command, const SweptSite& site, std::size_t cell) {
  const auto columns = static_cast<std::int64_t>(site.columns.size());
  const std::int64_t layer = static_cast<std::int64_t>(cell) / columns;
  const std::int64_t column = static_cast<std::int64_t>(cell) % columns;
  if (by_head(command, site.site)) return head_name({layer, column});
  const std::string& label = site.columns[static_cast<std::size_t>(column)];
  const std::string number =
      std::to_string(column - (site.sweep.from_end ? site.sweep.columns : 0));
  const std::string place = fmt::format("{} position {}", layer_name(layer), number);
  return number == label ? place : fmt::format("{} '{}'", place, label);
}

std::string strongest_table(const PatchCommand& command, const SweptSite& site) {
  std::vector<std::size_t> order(site.sweep.effects.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::abs(site.sweep.effects[a].mean) > std::abs(site.sweep.effects[b].mean);
  });
  Table table(
      {{"place"},
       {command.direction == "noising" ? "effect lost" : "effect restored", Align::kRight}});
  order.resize(std::min(order.size(), static_cast<std::size_t>(command.top)));
  for (const std::size_t i : order)
    table.add({place_name(command, site, i),
               fmt::format("{:+.1f} % +- {:.1f}", 100 * site.sweep.effects[i].mean,
                           100 * site.sweep.effects[i].error)});
  return table.text(2);
}

std::string text_of(const PatchCommand& command, const std::vector<SweptModel>& models) {
  const LoadedTask& task = models[0].task;
  std::string text =
      fmt::format("{}: {}, corruption {}, {}, {}\n", printable(task.prompts.task), task.description,
                  task.prompts.corruption, name_of(task.metric), command.direction);
  for (const SweptModel& model : models) {
    text += fmt::format("\n{}\n", printable(model.label));
    text += model.fit_text + verdict_text(model.check);
    for (const SweptSite& site : model.sites)
      text += fmt::format("\n  {} by {}{}: clean {}, corrupt {}\n", site.site,
                          axis_name(command, site.site),
                          site.sweep.from_end ? ", positions counted from the end" : "",
                          estimate_text(site.sweep.clean), estimate_text(site.sweep.corrupt)) +
              strongest_table(command, site);
  }
  return text;
}

Json json_of(const PatchCommand& command, const SweptModel& model) {
  Json sites = Json::array();
  for (const SweptSite& site : model.sites) {
    Json effects = Json::array(), errors = Json::array();
    for (std::int64_t layer = 0; layer < site.sweep.layers; ++layer) {
      Json effect_row = Json::array(), error_row = Json::array();
      for (std::int64_t column = 0; column < site.sweep.columns; ++column) {
        effect_row.push_back(site.sweep.at(layer, column).mean);
        error_row.push_back(site.sweep.at(layer, column).error);
      }
      effects.push_back(effect_row);
      errors.push_back(error_row);
    }
    sites.push_back({{"site", site.site},
                     {"by", axis_name(command, site.site)},
                     {"from_end", site.sweep.from_end},
                     {"columns", site.columns},
                     {"clean", study::to_json(site.sweep.clean)},
                     {"corrupt", study::to_json(site.sweep.corrupt)},
                     {"effect", effects},
                     {"standard_error", errors}});
  }
  return {{"model", model.model},
          {"fit", study::fit_json(model.task.prompts)},
          {"check", study::to_json(model.check)},
          {"sites", sites}};
}

void draw(const PatchCommand& command, const std::vector<SweptModel>& models) {
  figure::LabelledMaps maps;
  const LoadedTask& task = models[0].task;
  const bool noising = command.direction == "noising";
  maps.title =
      fmt::format("Patching {}: {}", fmt::join(command.sites, ", "), printable(task.prompts.task));
  maps.scale_label = noising ? "share of the effect lost" : "share of the effect restored";
  for (std::size_t s = 0; s < command.sites.size(); ++s)
    for (const SweptModel& model : models) {
      if (model.sites.empty()) continue;
      const SweptSite& site = model.sites[s];
      figure::MapPanel panel;
      panel.title =
          command.sites.size() > 1 ? fmt::format("{}: {}", model.label, site.site) : model.label;
      panel.rows.name = "layer";
      for (std::int64_t layer = 0; layer < site.sweep.layers; ++layer)
        panel.rows.labels.push_back(std::to_string(layer));
      const bool heads = by_head(command, site.site);
      panel.columns.name = heads                 ? "head"
                           : site.sweep.from_end ? "position from the end"
                                                 : "position";
      panel.columns.labels = site.columns;
      panel.columns.tokens = !heads;
      for (const Estimate& effect : site.sweep.effects)
        panel.values.push_back(static_cast<float>(effect.mean));
      maps.panels.push_back(std::move(panel));
    }
  if (maps.panels.empty()) return;
  // A scale to 1 is easier to read than one to 0.97.
  float most = 0;
  for (const figure::MapPanel& panel : maps.panels)
    for (const float value : panel.values) most = std::max(most, std::abs(value));
  if (most > 0.5f && most <= 1.02f) maps.end = 1;
  maps.caption = fmt::format(
      "Corruption {}, {}, {} prompts: {} 0 does not matter, 1 decides alone.",
      task.prompts.corruption, name_of(task.metric), task.prompts.prompts.size(),
      noising
          ? fmt::format("clean runs in which the place takes its {} value.", command.replacement)
          : std::string("corrupt runs in which the place takes its clean value."));
  study::save_figure(&maps, command.figure, command.style);
}

void run_patch(const PatchCommand& command, Session& session) {
  study::check_figure_file(command.figure);
  for (const std::string& site : command.sites) sweep_options(command, site);  // before the work
  for (const std::string& model : command.models) model_folder(model);
  catch_interrupts();
  const std::vector<std::string> labels = short_names(command.models);
  std::vector<SweptModel> models;
  for (std::size_t i = 0; i < command.models.size(); ++i)
    models.push_back(sweep_model(command.models[i], labels[i], command, session));
  for (const SweptModel& model : models)
    if (!model.check.better_than_chance || model.sites.empty()) session.set_exit_code(kOutOfReach);
  if (!command.figure.empty() && session.writes()) draw(command, models);
  if (!session.json()) {
    session.print(text_of(command, models));
    return;
  }
  Json list = Json::array();
  for (const SweptModel& model : models) list.push_back(json_of(command, model));
  session.print_json({{"task", models[0].task.prompts.task},
                      {"corruption", models[0].task.prompts.corruption},
                      {"metric", name_of(models[0].task.metric)},
                      {"direction", command.direction},
                      {"replacement", command.replacement},
                      {"out", command.figure.empty() ? Json() : Json(command.figure)},
                      {"models", list}});
}

}  // namespace

void add_patch(Program& program) {
  const auto command = std::make_shared<PatchCommand>();
  CLI::App& app =
      program.add({"patch",
                   "Patch a task's runs at every layer and head or position; a heat map.",
                   {"filigree patch gpt2 --task ioi --out heads.svg",
                    "filigree patch dense sparse --task ioi --site z --direction denoising",
                    "filigree patch gpt2 --task copy --site resid,mlp-out --out blocks.pdf",
                    "filigree patch gpt2 --task ioi --by layer-position --replacement mean --json"},
                   Computes::kOnRanks},
                  [command](Session& session) { run_patch(*command, session); });
  app.add_option("MODEL", command->models, "model folders or names, drawn side by side")
      ->required();
  app.add_option("--task", command->selection.name, "name of a task (see task list) or JSONL file")
      ->required()
      ->type_name("TASK");
  add_task_options(app, command->selection);
  app.add_option("--site", command->sites,
                 "what is patched: resid, resid-mid, attn-out, mlp-out, z, q, k, v or pattern; "
                 "several with commas")
      ->delimiter(',')
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("SITE")
      ->default_str("z");
  app.add_option("--by", command->by,
                 "layer-head or layer-position (default layer-head where the site has heads)")
      ->check(one_of({"layer-head", "layer-position"}))
      ->type_name("AXES");
  app.add_option("--direction", command->direction,
                 "noising (corrupt values into clean runs) or denoising (clean into corrupt)")
      ->check(one_of({"noising", "denoising"}))
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--replacement", command->replacement,
                 "of noising: corrupt, zero, mean or mean-by-position")
      ->check(one_of(names_of<Replacement>()))
      ->type_name("NAME")
      ->capture_default_str();
  app.add_flag("--one-length", command->one_length,
               "keep the prompts of the commonest length only, so that positions mean the same");
  app.add_option("--top", command->top, "places listed for each site")
      ->check(whole_number(0, 1 << 20))
      ->type_name("N")
      ->capture_default_str();
  add_figure_file(app, command->figure, command->style);
}

}  // namespace filigree::cli
