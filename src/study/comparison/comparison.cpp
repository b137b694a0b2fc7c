#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "analyze/statistics/statistics_report.h"
#include "filigree/comparison_study.h"
#include "filigree/error.h"
#include "filigree/features.h"
#include "filigree/names.h"
#include "filigree/study.h"
#include "filigree/version.h"
#include "study/attention/map_output.h"
#include "study/comparison/comparison_output.h"
#include "study/comparison/stored_runs.h"

namespace filigree::study {
namespace {

// Heads are named that changed most in these.
constexpr Statistic kChangesNamed[] = {Statistic::kPeak, Statistic::kDiagonalWeight,
                                       Statistic::kPreviousWeight, Statistic::kKeysPerQuery};
constexpr std::size_t kChangedHeads = 5;

// What a newcomer sees without choosing anything: names that are taken up again, words that repeat,
// opposites, facts. Eight, so that a permutation test can speak.
const std::vector<std::string> kDefaultPrompts = {
    "When Mary and John went to the store, John gave a drink to Mary. Then Mary thanked John.",
    "red apple green pear yellow plum red apple green pear yellow plum",
    "The opposite of \"large\" is \"small\". The opposite of \"hot\" is \"cold\".",
    "The capital of France is Paris, and the capital of Italy is Rome.",
    "Anna met Tom at the station. She was late, but he waited for her with the tickets.",
    "one two three four five six seven eight one two three four five six seven eight",
    "The keys to the cabinet are on the table, and the picture of the dogs is on the wall.",
    "The war lasted from the year 1732 to the year 1740, and the peace lasted until 1756.",
};

void check_models(Models models) {
  if (models.size() != 2)
    throw RequestError(fmt::format("{} models; two are compared", models.size()));
  const ModelConfig &a = models[0].config(), &b = models[1].config();
  require(a.layers == b.layers && a.heads == b.heads,
          "'{}' has {} layers of {} heads and '{}' {} of {}; a comparison wants models of one "
          "shape, an attention analysis can compare chosen heads",
          printable(models[0].name()), a.layers, a.heads, printable(models[1].name()), b.layers,
          b.heads);
}

// Everything that can be wrong is read before anything is written.
ComparisonPlan make_plan(const ComparisonRequest& request, const ModelConfig& config) {
  ComparisonPlan plan;
  plan.grid = parse_heads(request.heads, config.layers, config.heads);
  plan.asked = heads_in_order(request.heads, config);
  plan.columns = columns_of_layers(plan.asked, config.heads);
  plan.first = heads_in_order(request.first, config);
  plan.strips = heads_in_order(request.strips, config);
  plan.scatter = heads_in_order(request.scatter, config);
  return plan;
}

std::vector<TextLosses> measure_texts(const ComparisonRequest& request, Models models,
                                      const Context& context) {
  std::vector<TextLosses> losses;
  for (const HeldOutText& text : request.texts) {
    losses.push_back({text.name, {}});
    for (const LoadedModel& model : models) {
      WindowOptions windows = request.windows;
      if (windows.length > 0) windows.length = std::min(windows.length, model.config().context);
      losses.back().models.push_back(evaluate_text(model, text.text, windows, context,
                                                   fmt::format("{} {}", model.label(), text.name)));
    }
  }
  return losses;
}

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// What the page shows of its prompts and tasks besides maps and figures.
void store_runs(const ComparisonResult& result, Models models, Report& page,
                const Context& context) {
  const std::unique_ptr<WorkReport> report =
      context.begin({"page", "prompts", static_cast<std::int64_t>(page.prompts.size())});
  for (std::size_t p = 0; p < page.prompts.size(); ++p) {
    std::vector<TokenId> ids = result.prompts[p].ids;
    ids.resize(page.prompts[p].tokens.size());  // long ones are cut
    StoredPrompt stored = stored_prompt(models, ids, context);
    page.prompts[p].stored = text_of(stored.json);
    page.prompts[p].changed_maps = std::move(stored.changed_maps);
    report->update(static_cast<std::int64_t>(p + 1));
  }
  for (std::size_t t = 0; t < result.tasks.size(); ++t)
    if (const CircuitsOfKind* heads = result.tasks[t].find(Parts::kHeads))
      if (const Json runs = stored_circuits(*heads, models, context); !runs.is_null())
        page.tasks[t].stored = text_of(runs);
  report->finish();
}

}  // namespace

void check_request(const ComparisonRequest& request) {
  for (const TaskSelection& task : request.tasks) find_task(task.name);
  if (!request.features.empty() && request.features.size() != 2)
    throw RequestError("a prompt is traced through the features of both models or of none");
}

ComparisonResult run(const ComparisonRequest& request, Models models, const Context& context) {
  for (const LoadedModel& model : models) require_causal(model, "a comparison is");
  check_request(request);
  check_models(models);
  const OutputFolder out(request.folder);
  const ModelConfig& config = models[0].config();
  const ComparisonPlan plan = make_plan(request, config);
  PromptRequest wanted = request.prompts;
  if (wanted.empty()) wanted.source = numbered_prompts(kDefaultPrompts);
  const PromptSet prompts = read_prompts(wanted, models, context);

  ComparisonResult result;
  result.heads = all_heads(config.layers, config.heads);
  result.prompts = prompts.prompts;
  result.tasks_left_out = request.tasks_left_out;
  result.held_out = measure_texts(request, models, context);

  for (const std::string& name : request.features) open_dictionary(features_path(name));
  ComparisonFolder folder(out);
  result.folder = request.folder;
  std::unique_ptr<MapFile> maps;
  if (request.maps)
    maps = open_map_file(folder.root() / "data/maps.npz", MapKind::kWeights, false, models,
                         result.heads, prompts.prompts);
  ComparisonMaps seen(plan, result.heads, prompts.prompts, models);
  for (std::size_t m = 0; m < 2; ++m) {
    AnalysisPlan analysis;
    analysis.heads = result.heads;
    analysis.roles = analysis.statistics = analysis.pairs = true;
    analysis.each = [&](std::span<const HeadMap> heads) {
      seen.add(m, heads);
      if (!maps) return;
      for (const HeadMap& head : heads) maps->add(head.weights);
    };
    result.models.push_back(analyse_model(models[m], prompts, analysis, context));
  }
  result.comparison = compare_statistics(*result.models[0].statistics, *result.models[1].statistics,
                                         {.seed = context.seed});
  result.connections = compare_connections(*result.models[0].statistics,
                                           *result.models[1].statistics, {.seed = context.seed});
  if (maps) {
    maps->commit();
    folder.add("data/maps.npz");
  }
  for (const TaskSelection& task : request.tasks)
    result.tasks.push_back(find_task_circuits(task, models, request.effort, context));

  write_figures(request, plan, result, seen, folder, context.seed);
  write_tables(result, folder);
  NamedTexts made = request.made;
  const NamedTexts known = {
      {"version", build_description()},
      {"seed", std::to_string(context.seed)},
      {"first model", models[0].name()},
      {"second model", models[1].name()},
      {"prompts",
       fmt::format("{}, {} of them shown here", prompts.prompts.size(), seen.page().prompts())}};
  made.insert(made.end(), known.begin(), known.end());
  Report page = make_page(page_title(request, result), result, models, seen.page());
  page.tasks = write_tasks(request, result, models, folder);
  store_runs(result, models, page, context);
  if (!request.features.empty())
    page.tasks.insert(page.tasks.begin(), write_trace(request, models, result, folder, context));
  page.made = std::move(made);
  write_report(page, folder.add("report.html"));
  result.files = folder.files();
  return result;
}

Json findings_json(const ComparisonResult& result) {
  Json json = {{"prompts", result.prompts.size()}, {"models", Json::array()}};
  for (const AnalysedModel& model : result.models) json["models"].push_back(to_json(model));
  json["comparison"] = comparison_json(result.comparison, result.connections);
  json["most_changed"] = Json::object();
  for (const Statistic statistic : kChangesNamed)
    for (const ChangedHead& changed : most_changed(result.comparison, statistic, kChangedHeads))
      json["most_changed"][std::string(name_of(statistic))].push_back(
          {{"head", head_name(changed.head)},
           {"first", changed.first},
           {"second", changed.second}});
  json["tasks"] = Json::array();
  for (const TaskCircuits& task : result.tasks) json["tasks"].push_back(to_json(task));
  json["held_out"] = Json::array();
  for (const TextLosses& text : result.held_out)
    json["held_out"].push_back({{"text", text.text}, {"models", to_json(text.models)}});
  json["tasks_left_out"] = Json::array();
  for (const TaskLeftOut& task : result.tasks_left_out)
    json["tasks_left_out"].push_back({{"task", task.task}, {"why", task.why}});
  return json;
}

Json to_json(const ComparisonResult& result) {
  Json json = findings_json(result);
  json["trace"] = result.trace;
  json["out"] = result.folder.string();
  json["report"] = result.page().string();
  json["files"] = result.files;
  return json;
}

Knobs knobs_of(ComparisonRequest& request) {
  Knobs knobs;
  knobs.section("Heads");
  knobs.text({.name = "first",
              .what = "heads that come first in the grid, by importance, such as L9H1,L3H0"},
             request.first);
  knobs.text({.name = "strips",
              .what = "heads drawn large side by side",
              .otherwise = "the three that changed most"},
             request.strips);
  knobs.text(
      {.name = "scatter", .what = "heads of the scatter matrix", .otherwise = "five that differ"},
      request.scatter);
  knobs.section("Trace");
  knobs.text({.name = "trace-prompt", .what = "prompt that is traced"}, request.trace.prompt);
  knobs.section("Files");
  knobs.flag({.name = "maps", .what = "write every map of every prompt too, as data/maps.npz"},
             request.maps);
  knobs.add(knobs_of(request.layout));
  knobs.add(knobs_of(request.style));
  return knobs;
}

}  // namespace filigree::study
