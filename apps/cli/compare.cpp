// filigree compare: a dense model and its sparse twin on the same prompts, as a folder of figures,
// tables and data with one offline page.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "analyze/map_file.h"
#include "analyze/statistics_report.h"
#include "apps/cli/attention_figures.h"
#include "apps/cli/attention_output.h"
#include "apps/cli/attention_report.h"
#include "apps/cli/commands.h"
#include "apps/cli/comparison_files.h"
#include "apps/cli/comparison_report.h"
#include "apps/cli/input.h"
#include "apps/cli/program.h"
#include "base/atomic_file.h"
#include "base/error.h"
#include "base/strings.h"
#include "base/version.h"

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

// Runs both models over the prompts; everything that needs all maps happens here.
Compared analyse(const CompareOptions& options, MapGrid& grid, MapFile* maps, Compared compared,
                 const std::vector<HeadId>& grid_heads, const Session& session) {
  compared.page_prompts = std::min(kMostReportPrompts, compared.prompts.prompts.size());
  compared.page_tokens = report_tokens(2, compared.heads.size(), compared.page_prompts);
  const std::vector<std::string> labels = short_names({options.dense, options.sparse});
  for (std::size_t m = 0; m < 2; ++m) {
    ReportMaps page(compared.heads.size(), compared.page_prompts, compared.page_tokens);
    AnalysisPlan plan;
    plan.heads = compared.heads;
    plan.roles = plan.statistics = plan.pairs = true;
    plan.also = [&](std::span<const HeadMap> heads) {
      page.add(heads);
      for (const HeadMap& head : heads)
        if (head.prompt == 0 &&
            std::find(grid_heads.begin(), grid_heads.end(), head.head) != grid_heads.end())
          grid.add(m, head.head, head.weights, head.length);
    };
    compared.analysed.push_back(analyse_attention(compared.models[m].name, labels[m],
                                                  compared.prompts, plan, maps, session));
    compared.packed.push_back(page.packed());
    compared.parameters.push_back(
        load_model(model_folder(compared.models[m].name), {.warn_about_values = false})
            ->parameter_count());
    compared.roles.emplace_back();
    for (const RoleScores& scores : compared.analysed[m].roles)
      compared.roles[m].push_back(classify(scores));
  }
  compared.comparison =
      compare_statistics(*compared.analysed[0].statistics, *compared.analysed[1].statistics,
                         {.seed = session.options().seed});
  return compared;
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
  for (const TaskCircuits& task : compared.tasks) json["tasks"].push_back(task_circuits_json(task));
  return json;
}

void write_page(const CompareOptions& options, const Compared& compared, Folder& folder,
                const Session& session) {
  ReportSource source;
  source.title = options.title;
  source.models = compared.models;
  source.parameters = compared.parameters;
  source.analysed = compared.analysed;
  source.heads = compared.heads;
  source.comparison = compared.comparison;
  source.maps = compared.packed;
  source.tokens = compared.page_tokens;
  source.tasks = write_tasks(options, compared, folder);
  source.prompts.assign(
      compared.prompts.prompts.begin(),
      compared.prompts.prompts.begin() + static_cast<std::ptrdiff_t>(compared.page_prompts));
  source.made = {{"command", session.command_line()},
                 {"version", build_description()},
                 {"seed", std::to_string(session.options().seed)},
                 {"first model", options.dense},
                 {"second model", options.sparse},
                 {"prompts", fmt::format("{}, {} of them shown here",
                                         compared.prompts.prompts.size(), compared.page_prompts)}};
  write_report(make_report(source), folder.add("report.html"));
}

void run_compare(CompareOptions options, Session& session) {
  check_figures(options.style);
  if (options.prompts.texts.empty() && options.prompts.file.empty() && options.prompts.data.empty())
    options.prompts.texts = kDefaultPrompts;
  Compared compared;
  for (const std::string& name : {options.dense, options.sparse})
    compared.models.push_back({name, read_model_config(model_folder(name))});
  check_models(compared.models);
  const ModelConfig& config = compared.models[0].config;
  compared.heads = all_heads(config.layers, config.heads);
  const std::vector<HeadId> grid_heads = parse_heads(options.heads, config.layers, config.heads);
  for (const std::string* heads : {&options.strips, &options.scatter})
    if (!heads->empty()) parse_order(*heads, config);
  if (options.order != "layer" && options.order != "role") parse_order(options.order, config);
  for (const std::string& task : options.tasks) find_task(task);  // throws for those there are not
  compared.prompts = read_prompts(options.prompts, compared.models, session.options().seed);
  const std::vector<std::string> labels = short_names({options.dense, options.sparse});
  if (options.title.empty()) options.title = fmt::format("{} and {}", labels[0], labels[1]);

  catch_interrupts();
  Folder folder(options.out);
  MapGrid grid(MapKind::kWeights, labels);
  std::unique_ptr<MapFile> maps;
  if (options.data)
    maps = open_output({(folder.root() / "data/maps.npz").string(),
                        MapKind::kWeights,
                        false,
                        {options.dense, options.sparse}},
                       compared.heads, compared.prompts.prompts);
  compared = analyse(options, grid, maps.get(), std::move(compared), grid_heads, session);
  if (maps) {
    maps->commit();
    folder.add("data/maps.npz");
  }
  for (const std::string& task : options.tasks) {
    TaskSelection selection = options.task;
    selection.name = task;
    compared.tasks.push_back(find_task_circuits(selection, {options.dense, options.sparse},
                                                options.level / 100, session));
  }
  write_figures(options, compared, grid, grid_heads, folder, session.options().seed);
  write_file_atomically(folder.add("tables/roles.csv"), roles_csv(compared));
  write_file_atomically(folder.add("tables/statistics.csv"), comparison_csv(compared.comparison));
  const Json summary = summary_json(compared);
  write_file_atomically(folder.add("data/summary.json"), summary.dump(1) + "\n");
  write_page(options, compared, folder, session);

  if (session.json()) {
    Json json = summary;
    json["out"] = options.out;
    json["files"] = folder.files();
    session.print_json(json);
    return;
  }
  std::string tasks;
  for (const TaskCircuits& task : compared.tasks) tasks += task_circuits_text(task) + "\n";
  session.print(role_table(compared.analysed, compared.heads) + "\n" +
                comparison_table(compared.comparison, labels[0], labels[1], false) + "\n" + tasks +
                fmt::format("{} files; the report is {}\n", folder.files().size(),
                            (folder.root() / "report.html").string()));
}

}  // namespace

void add_compare(Program& program) {
  const auto options = std::make_shared<CompareOptions>();
  CLI::App& app = program.add(
      {"compare",
       "A dense and a sparse model side by side: figures, tables, one offline page.",
       {"filigree compare dense sparse --out comparison",
        "filigree compare dense sparse --out comparison --file prompts.txt --order role",
        "filigree compare dense sparse --out comparison --data shards --samples 50",
        "filigree compare dense sparse --out comparison --task ioi,greater-than",
        "filigree compare a b --out ab --format pdf --theme print --strips L5H1,L6H0"}},
      [options](Session& session) { run_compare(*options, session); });
  app.add_option("DENSE", options->dense, "model folder")->required();
  app.add_option("SPARSE", options->sparse, "model folder, of the same shape and tokenizer")
      ->required();
  app.add_option("--out", options->out, "folder for figures, tables, data and report.html")
      ->required()
      ->type_name("DIR");
  app.add_option("--title", options->title, "of the grid and the page")->type_name("TEXT");
  add_prompt_options(app, options->prompts);
  app.add_option("--heads", options->heads, "heads of the grid: L5H1,L6H*,3.0-3.5 or * for all")
      ->type_name("HEADS")
      ->capture_default_str();
  app.add_option("--order", options->order,
                 "of the grid: layer, role, or heads by importance, such as L9H1,L3H0")
      ->type_name("ORDER")
      ->capture_default_str();
  app.add_option("--strips", options->strips,
                 "heads drawn large side by side (default the three that changed most)")
      ->type_name("HEADS");
  app.add_option("--scatter", options->scatter,
                 "heads of the scatter matrix (default five that differ)")
      ->type_name("HEADS");
  app.add_option(
         "--task", options->tasks,
         "tasks whose circuits of heads, edges and attention edges are compared too; several with "
         "commas")
      ->delimiter(',')
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("TASK");
  app.add_option("--task-prompts", options->task.prompts, "prompts of each task")
      ->check(whole_number(1, 10000))
      ->type_name("N")
      ->capture_default_str();
  app.add_flag("--first-token", options->task.first_token,
               "of a task's answers of several tokens take the first");
  app.add_option("--level", options->level, "share of a task's effect to explain, in percent")
      ->check(number_above(0, 100))
      ->type_name("PERCENT")
      ->default_str("90");
  add_figure_formats(app, options->formats);
  add_figure_options(app, options->style);
  app.add_flag("--maps", options->data, "write every map of every prompt too, as data/maps.npz");
}

}  // namespace filigree::cli
