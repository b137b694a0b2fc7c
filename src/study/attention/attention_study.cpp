#include "filigree/attention_study.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/statistics/statistics_report.h"
#include "base/atomic_file.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "study/attention/map_output.h"

namespace filigree::study {
namespace {

namespace fs = std::filesystem;

bool is_table(const fs::path& file) { return file.extension() == ".csv"; }

bool is_map_file(const fs::path& file) {
  const fs::path ending = file.extension();
  return is_figure_file(file) || ending == ".npz" || ending == ".safetensors" || ending == ".json";
}

std::vector<fs::path> map_files(const AttentionRequest& request) {
  std::vector<fs::path> files;
  std::copy_if(request.files.begin(), request.files.end(), std::back_inserter(files), is_map_file);
  return files;
}

std::vector<HeadId> common_heads(const std::string& text, Models models) {
  const ModelConfig& first = models[0].config();
  const std::vector<HeadId> heads = parse_heads(text, first.layers, first.heads);
  for (const LoadedModel& model : models)
    require(parse_heads(text, model.config().layers, model.config().heads) == heads,
            "'{}' has {} layers of {} heads and '{}' {} of {}; choose heads that both have",
            printable(models[0].name()), first.layers, first.heads, printable(model.name()),
            model.config().layers, model.config().heads);
  return heads;
}

std::string statistics_table(const AttentionResult& result) {
  require(result.models[0].statistics.has_value(),
          "statistics are of causal attention, and that of '{}' is bidirectional",
          printable(result.models[0].model));
  if (result.comparison) return comparison_csv(*result.comparison, result.connections);
  return statistics_csv_heading() +
         statistics_csv(*result.models[0].statistics, result.models[0].label);
}

}  // namespace

void check_request(const AttentionRequest& request) {
  for (const fs::path& file : request.files)
    if (!is_table(file) && !is_map_file(file))
      throw RequestError(
          fmt::format("'{}' must end in .npz, .safetensors or .json for maps, .svg, .pdf or .png "
                      "for a figure of them, or .csv for statistics",
                      printable(file.string())));
  if (request.average && map_files(request).empty())
    throw RequestError("a mean of maps goes into a file of maps or a figure; none was asked for");
}

AttentionResult run(const AttentionRequest& request, Models models, const Context& context) {
  check_request(request);
  if (models.empty() || models.size() > 2)
    throw RequestError(
        fmt::format("{} models; attention is looked at in one or two", models.size()));
  AttentionResult result;
  result.kind = request.kind;
  result.interventions = request.interventions;
  result.files = request.files;
  result.heads = common_heads(request.heads, models);
  PromptSet prompts = read_prompts(request.prompts, models, context);
  const bool table = std::any_of(request.files.begin(), request.files.end(), is_table);
  MapOutput output({map_files(request), request.kind, request.average, request.style, request.grid,
                    heads_in_order(request.heads, models[0].config()), request.interventions},
                   models, result.heads, prompts.prompts);
  for (std::size_t m = 0; m < models.size(); ++m) {
    AnalysisPlan plan;
    plan.heads = result.heads;
    plan.roles = request.roles, plan.pairs = request.pairs;
    plan.statistics = request.statistics || table;
    plan.interventions = prompts.prompts.size() == 1
                             ? for_text(request.interventions, models[m], prompts.prompts[0].ids)
                             : for_model(request.interventions, models[m]);
    output.watch(m, plan);
    if (models[m].config().bidirectional) {
      if (!plan.each && !plan.mean) require_causal(models[m], "roles, statistics and pairs are");
      plan.roles = plan.pairs = plan.statistics = false;
    }
    result.models.push_back(analyse_model(models[m], prompts, plan, context));
  }
  output.finish(result.models);
  if (result.models[0].statistics && models.size() == 2) {
    const AttentionStatistics &first = *result.models[0].statistics,
                              &second = *result.models[1].statistics;
    result.comparison = compare_statistics(first, second, {.seed = context.seed});
    result.connections = compare_connections(first, second, {.seed = context.seed});
  }
  for (const fs::path& file : request.files)
    if (is_table(file)) write_file_atomically(file, statistics_table(result));
  result.prompts = std::move(prompts.prompts);
  return result;
}

Json to_json(const AttentionResult& result) {
  Json json = {{"prompts", to_json(result.prompts)}, {"heads", Json::array()}};
  for (const HeadId& head : result.heads) json["heads"].push_back(head_name(head));
  json["interventions"] = to_json(result.interventions);
  json["models"] = Json::array();
  for (const AnalysedModel& model : result.models) json["models"].push_back(to_json(model));
  json["comparison"] =
      result.comparison ? comparison_json(*result.comparison, result.connections) : Json();
  json["files"] = Json::array();
  for (const fs::path& file : result.files) json["files"].push_back(file.string());
  return json;
}

Knobs knobs_of(GridLayout& layout) {
  Knobs knobs;
  knobs.section("Figures");
  knobs.text({.name = "title", .what = "title of the figure", .level = KnobLevel::kBasic},
             layout.title);
  knobs.count({.name = "columns",
               .what = "maps in a row of the grid",
               .otherwise = "a layer a row where whole layers are shown, else what fits"},
              layout.columns, {.min = 1, .max = 1000});
  knobs.number({.name = "figure-width",
                .what = "width of the grid",
                .unit = "points",
                .otherwise = "516 points, that of a page"},
               layout.width, {.min = 250, .max = 4000});
  return knobs;
}

Knobs knobs_of(AttentionRequest& request) {
  Knobs knobs;
  knobs.section("Maps");
  knobs.flag({.name = "average", .what = "write the mean over the prompts, of one length"},
             request.average);
  knobs.add(knobs_of(request.grid));
  knobs.add(knobs_of(request.style));
  return knobs;
}

}  // namespace filigree::study
