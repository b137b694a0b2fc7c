#include "apps/cli/comparison/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "apps/cli/attention/attention_output.h"
#include "apps/cli/attention/attention_report.h"
#include "apps/cli/comparison/comparison_report.h"
#include "apps/cli/program/input.h"
#include "filigree/analyze/maps/map_file.h"
#include "filigree/analyze/statistics/statistics_report.h"
#include "filigree/base/atomic_file.h"
#include "filigree/base/error.h"
#include "filigree/base/strings.h"
#include "filigree/base/version.h"

namespace filigree::cli {
namespace {

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

constexpr std::size_t kMostReportPrompts = 8;

void check_models(const std::vector<PromptModel>& models) {
  const ModelConfig &a = models[0].config, &b = models[1].config;
  require(a.layers == b.layers && a.heads == b.heads,
          "'{}' has {} layers of {} heads and '{}' {} of {}; compare wants models of one shape "
          "(filigree attention compares chosen heads)",
          printable(models[0].name), a.layers, a.heads, printable(models[1].name), b.layers,
          b.heads);
}

Json summary_json(const Compared& compared) {
  Json json = {{"prompts", compared.prompts.prompts.size()}, {"models", Json::array()}};
  for (std::size_t m = 0; m < 2; ++m) {
    const AnalysedModel& model = compared.analysed[m];
    json["models"].push_back({{"model", model.model},
                              {"label", model.label},
                              {"parameters", compared.parameters[m]},
                              {"roles", roles_json(model, compared.heads)},
                              {"statistics", statistics_json(*model.statistics)},
                              {"pairs", pairs_json(*model.pairs)}});
  }
  json["comparison"] = comparison_json(compared.comparison);
  if (!compared.tasks.empty()) json["tasks"] = Json::array();
  for (const study::TaskCircuits& task : compared.tasks) json["tasks"].push_back(to_json(task));
  return json;
}

}  // namespace

Comparison::Comparison(CompareOptions options, const Session& session)
    : options_(std::move(options)),
      session_(session),
      labels_(short_names({options_.dense, options_.sparse})) {
  check_figures();
  PromptOptions& prompts = options_.prompts;
  if (prompts.texts.empty() && prompts.file.empty() && prompts.data.empty())
    prompts.texts = kDefaultPrompts;
  for (const std::string& name : {options_.dense, options_.sparse})
    compared_.models.push_back({name, read_model_config(model_folder(name))});
  check_models(compared_.models);
  const ModelConfig& config = compared_.models[0].config;
  compared_.heads = all_heads(config.layers, config.heads);
  grid_heads_ = parse_heads(options_.heads, config.layers, config.heads);
  for (const std::string* heads : {&options_.strips, &options_.scatter})
    if (!heads->empty()) parse_order(*heads, config);
  if (options_.order != "layer" && options_.order != "role") parse_order(options_.order, config);
  for (const study::TaskSelection& task : options_.tasks)
    study::find_task(task.name);  // throws if it is none
  compared_.prompts = read_prompts(prompts, compared_.models, session.options().seed);
  if (options_.title.empty()) options_.title = fmt::format("{} and {}", labels_[0], labels_[1]);
}

// Runs both models over the prompts; everything that needs all maps happens here.
void Comparison::analyse(MapGrid& grid, MapFile* maps) {
  compared_.page_prompts = std::min(kMostReportPrompts, compared_.prompts.prompts.size());
  compared_.page_tokens = report_tokens(2, compared_.heads.size(), compared_.page_prompts);
  for (std::size_t m = 0; m < 2; ++m) {
    ReportMaps page(compared_.heads.size(), compared_.page_prompts, compared_.page_tokens);
    AnalysisPlan plan;
    plan.heads = compared_.heads;
    plan.roles = plan.statistics = plan.pairs = true;
    plan.also = [&](std::span<const HeadMap> heads) {
      page.add(heads);
      for (const HeadMap& head : heads)
        if (head.prompt == 0 &&
            std::find(grid_heads_.begin(), grid_heads_.end(), head.head) != grid_heads_.end())
          grid.add(m, head.head, head.weights, head.length);
    };
    compared_.analysed.push_back(analyse_attention(compared_.models[m].name, labels_[m],
                                                   compared_.prompts, plan, maps, session_));
    compared_.packed.push_back(page.packed());
    compared_.parameters.push_back(
        load_model(model_folder(compared_.models[m].name), {.warn_about_values = false})
            ->parameter_count());
    compared_.roles.emplace_back();
    for (const RoleScores& scores : compared_.analysed[m].roles)
      compared_.roles[m].push_back(classify(scores));
  }
  compared_.comparison =
      compare_statistics(*compared_.analysed[0].statistics, *compared_.analysed[1].statistics,
                         {.seed = session_.options().seed});
}

void Comparison::write_page(const More& more, Folder& folder) {
  ReportSource source;
  source.title = options_.title;
  source.models = compared_.models;
  source.parameters = compared_.parameters;
  source.analysed = compared_.analysed;
  source.heads = compared_.heads;
  source.comparison = compared_.comparison;
  source.maps = compared_.packed;
  source.tokens = compared_.page_tokens;
  source.tasks = write_tasks(options_, compared_, loaded_, folder);
  source.facts = more.facts;
  source.prompts.assign(
      compared_.prompts.prompts.begin(),
      compared_.prompts.prompts.begin() + static_cast<std::ptrdiff_t>(compared_.page_prompts));
  source.made = {
      {"command", session_.command_line()},
      {"version", build_description()},
      {"seed", std::to_string(session_.options().seed)},
      {"first model", options_.dense},
      {"second model", options_.sparse},
      {"prompts", fmt::format("{}, {} of them shown here", compared_.prompts.prompts.size(),
                              compared_.page_prompts)}};
  write_report(make_report(source), folder.add("report.html"));
}

void Comparison::write(const More& more) {
  catch_interrupts();
  Folder folder(options_.out);
  MapGrid grid(MapKind::kWeights, labels_);
  std::unique_ptr<MapFile> maps;
  if (options_.data)
    maps = open_output({(folder.root() / "data/maps.npz").string(),
                        MapKind::kWeights,
                        false,
                        {options_.dense, options_.sparse}},
                       compared_.heads, compared_.prompts.prompts);
  analyse(grid, maps.get());
  if (maps) {
    maps->commit();
    folder.add("data/maps.npz");
  }
  const study::Context context = session_.context();
  if (!options_.tasks.empty())
    loaded_ = study::load_models({options_.dense, options_.sparse}, context);
  for (const study::TaskSelection& task : options_.tasks)
    compared_.tasks.push_back(find_task_circuits(task, loaded_, options_.effort, context));
  write_figures(options_, compared_, grid, grid_heads_, folder, session_.options().seed);
  write_file_atomically(folder.add("tables/roles.csv"), roles_csv(compared_));
  write_file_atomically(folder.add("tables/statistics.csv"), comparison_csv(compared_.comparison));
  summary_ = summary_json(compared_);
  summary_.update(more.summary);
  write_file_atomically(folder.add("data/summary.json"), summary_.dump(1) + "\n");
  write_page(more, folder);
  files_ = folder.files();
}

}  // namespace filigree::cli
