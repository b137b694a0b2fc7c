// filigree attention: the attention maps of a model or two, on prompts, and what they show.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "apps/cli/attention/attention_analysis.h"
#include "apps/cli/attention/attention_figures.h"
#include "apps/cli/attention/attention_output.h"
#include "apps/cli/attention/attention_prompts.h"
#include "apps/cli/attention/attention_report.h"
#include "apps/cli/commands.h"
#include "apps/cli/program/choices.h"
#include "apps/cli/program/figure_options.h"
#include "apps/cli/program/input.h"
#include "apps/cli/program/program.h"
#include "filigree/analyze/maps/average.h"
#include "filigree/analyze/statistics/statistics_report.h"
#include "filigree/base/atomic_file.h"
#include "filigree/base/error.h"
#include "filigree/base/strings.h"
#include "filigree/study/model_places.h"

namespace filigree::cli {
namespace {

constexpr std::size_t kMostTokensInJson = 4096;

struct AttentionOptions {
  std::vector<std::string> models;
  PromptOptions prompts;
  std::string heads = "*";
  MapKind what = MapKind::kWeights;
  bool average = false;
  std::string out;
  std::string csv;
  FigureStyle style;
  bool roles = false, statistics = false, pairs = false, by_head = false;
};

void check_options(AttentionOptions& options) {
  if (options.models.size() > 2)
    throw UsageError(
        fmt::format("'{}' is a third model; at most two are compared. Prompts are given "
                    "with --prompt TEXT",
                    printable(options.models[2])));
  if (options.average && options.out.empty()) throw UsageError("--average goes with --out FILE");
  if (!options.csv.empty()) options.statistics = true;
  // Without a wish, the two that fit a terminal.
  if (options.out.empty() && !options.roles && !options.statistics && !options.pairs)
    options.roles = options.statistics = true;
}

std::vector<PromptModel> read_models(const std::vector<std::string>& names) {
  std::vector<PromptModel> models;
  for (const std::string& name : names) {
    std::error_code ignored;
    // The second argument may have been meant as text.
    if (!models.empty() && !std::filesystem::exists(name, ignored) &&
        !study::find_named_model(name))
      fail("model '{}': no such folder or name; prompts are given with --prompt TEXT",
           printable(name));
    models.push_back({name, read_model_config(model_folder(name))});
  }
  return models;
}

std::vector<HeadId> choose_heads(const std::string& text, const std::vector<PromptModel>& models) {
  const ModelConfig& first = models[0].config;
  const std::vector<HeadId> heads = parse_heads(text, first.layers, first.heads);
  for (const PromptModel& model : models)
    require(parse_heads(text, model.config.layers, model.config.heads) == heads,
            "'{}' has {} layers of {} heads and '{}' {} of {}; choose heads that both have with "
            "--heads",
            printable(models[0].name), first.layers, first.heads, printable(model.name),
            model.config.layers, model.config.heads);
  return heads;
}

Json prompts_json(const std::vector<Prompt>& prompts) {
  std::size_t tokens = 0;
  for (const Prompt& prompt : prompts) tokens += prompt.ids.size();
  Json json = {{"count", prompts.size()}, {"tokens", tokens}};
  if (tokens > kMostTokensInJson) return json;
  json["list"] = Json::array();
  for (const Prompt& prompt : prompts)
    json["list"].push_back({{"ids", prompt.ids}, {"tokens", prompt.tokens}});
  return json;
}

struct Findings {
  std::vector<HeadId> heads;
  std::vector<Prompt> prompts;
  std::vector<AnalysedModel> models;
  std::optional<std::vector<ComparedStatistic>> comparison;
};

void write_csv(const std::string& path, const Findings& findings) {
  if (findings.comparison) {
    write_file_atomically(path, comparison_csv(*findings.comparison));
    return;
  }
  write_file_atomically(
      path, statistics_csv_heading() +
                statistics_csv(*findings.models[0].statistics, findings.models[0].label));
}

Json findings_json(const AttentionOptions& options, const Findings& findings) {
  Json json = {{"prompts", prompts_json(findings.prompts)}, {"heads", Json::array()}};
  for (const HeadId& head : findings.heads) json["heads"].push_back(head_name(head));
  json["models"] = Json::array();
  for (const AnalysedModel& model : findings.models) {
    Json entry = {{"model", model.model}, {"label", model.label}};
    if (options.roles) entry["roles"] = roles_json(model, findings.heads);
    if (model.statistics) entry["statistics"] = statistics_json(*model.statistics);
    if (model.pairs) entry["pairs"] = pairs_json(*model.pairs);
    json["models"].push_back(std::move(entry));
  }
  if (findings.comparison) json["comparison"] = comparison_json(*findings.comparison);
  if (!options.out.empty()) json["out"] = options.out;
  if (!options.csv.empty()) json["csv"] = options.csv;
  return json;
}

std::string findings_text(const AttentionOptions& options, const Findings& findings) {
  std::vector<std::string> parts;
  if (options.roles) parts.push_back(role_table(findings.models, findings.heads));
  if (findings.comparison)
    parts.push_back(comparison_table(*findings.comparison, findings.models[0].label,
                                     findings.models[1].label, options.by_head));
  else if (options.statistics)
    parts.push_back(statistics_table(findings.models[0], options.by_head));
  for (const AnalysedModel& model : findings.models)
    if (model.pairs) parts.push_back(pair_table(model));
  if (!options.out.empty())
    parts.push_back(fmt::format("{} of {} heads on {} prompts: {}\n", name_of(options.what),
                                findings.heads.size(), findings.prompts.size(), options.out));
  return fmt::format("{}", fmt::join(parts, "\n"));
}

void check_figure(const AttentionOptions& options, const std::vector<Prompt>& prompts) {
  check_figures();
  if (!options.average && prompts.size() > 1)
    throw UsageError(fmt::format(
        "a figure shows one prompt, or the mean of {} with --average; .npz holds them all",
        prompts.size()));
  if (options.average) common_length(prompts);
}

void write_grid(const AttentionOptions& options, const AnalysisPlan& plan,
                const std::vector<Prompt>& prompts, const std::vector<AnalysedModel>& models) {
  std::vector<std::string> titles;
  for (const AnalysedModel& model : models) titles.push_back(model.label);
  MapGrid grid(plan.kind, titles);
  std::vector<std::vector<HeadRole>> roles;
  for (std::size_t m = 0; m < models.size(); ++m) {
    fill_grid(grid, m, models[m].model, plan.heads, prompts, plan.kind, plan.average);
    if (models[m].roles.empty()) continue;
    roles.emplace_back();
    for (const RoleScores& scores : models[m].roles) roles[m].push_back(classify(scores));
  }
  MapGrid::Text text;
  if (options.average) {
    text.prompt = fmt::format("Mean over {} prompts.", prompts.size());
  } else {
    text.tokens = prompts[0].tokens;
    text.prompt = fmt::format("Prompt: {}", fmt::join(prompts[0].tokens, ""));
  }
  grid.write(options.out, text, options.style, roles);
}

void run_attention(AttentionOptions options, const Session& session) {
  check_options(options);
  const std::vector<PromptModel> models = read_models(options.models);
  AnalysisPlan plan;
  plan.heads = choose_heads(options.heads, models);
  plan.kind = options.what;
  plan.roles = options.roles, plan.statistics = options.statistics, plan.pairs = options.pairs;
  plan.average = options.average;
  PromptSet prompts = read_prompts(options.prompts, models, session.options().seed);
  std::unique_ptr<MapFile> maps;
  const bool figure = is_figure_file(options.out);
  if (figure)
    check_figure(options, prompts.prompts);
  else if (!options.out.empty())
    maps = open_output({options.out, plan.kind, plan.average, options.models}, plan.heads,
                       prompts.prompts);

  catch_interrupts();
  Findings findings;
  findings.heads = plan.heads;
  const std::vector<std::string> labels = short_names(options.models);
  for (std::size_t m = 0; m < models.size(); ++m)
    findings.models.push_back(
        analyse_attention(models[m].name, labels[m], prompts, plan, maps.get(), session));
  if (maps) maps->commit();
  if (figure) write_grid(options, plan, prompts.prompts, findings.models);
  if (plan.statistics && models.size() == 2)
    findings.comparison =
        compare_statistics(*findings.models[0].statistics, *findings.models[1].statistics,
                           {.seed = session.options().seed});
  findings.prompts = std::move(prompts.prompts);
  if (!options.csv.empty()) write_csv(options.csv, findings);
  if (session.json())
    session.print_json(findings_json(options, findings));
  else
    session.print(findings_text(options, findings));
}

}  // namespace

void add_attention(Program& program) {
  const auto options = std::make_shared<AttentionOptions>();
  CLI::App& app =
      program.add({"attention",
                   "Attention maps on prompts: files, head roles, statistics, head pairs.",
                   {"filigree attention gpt2 --prompt \"The cat sat on the mat\"",
                    "filigree attention dense sparse --data shards --samples 50 --stats",
                    "filigree attention dense sparse --prompt \"a b a b\" --roles --out maps.pdf",
                    "filigree attention gpt2 --file prompts.txt --heads L5H1,L6H* --out maps.npz",
                    "filigree attention sparse --prompt \"a b a b\" --what gate --out gates.json"},
                   Computes::kOnDevice},
                  [options](Session& session) { run_attention(*options, session); });
  app.add_option("MODEL", options->models, "model folder or name, or two to compare")->required();
  add_prompt_options(app, options->prompts);
  app.add_option("--heads", options->heads, "L5H1,L6H*,3.0-3.5,L2H1-L2H4 or * for all")
      ->type_name("HEADS")
      ->capture_default_str();
  app.add_flag("--roles", options->roles,
               "what each head does: sink, previous token, induction, ...");
  app.add_flag("--stats", options->statistics,
               "peak, row mass, entropy, ... of model and layers; of two models the change with "
               "intervals and p-values over the prompts");
  app.add_flag("--by-head", options->by_head, "print the statistics of every head too");
  app.add_option("--csv", options->csv, "write the statistics, of every head too, as CSV")
      ->type_name("FILE");
  app.add_flag("--pairs", options->pairs, "correlation of every pair of heads over all cells");
  app.add_option("--out", options->out,
                 "write the maps: a figure (.svg, .pdf, .png) or data (.npz, "
                 ".safetensors, .json)")
      ->type_name("FILE");
  add_choice(app, "--what", options->what, "maps to write");
  app.add_flag("--average", options->average, "write the mean over the prompts, of one length");
  add_figure_options(app, options->style);
}

}  // namespace filigree::cli
