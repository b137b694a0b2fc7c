// filigree compare: a dense model and its sparse twin on the same prompts, as a folder of figures,
// tables and data with one offline page.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "analyze/map_file.h"
#include "analyze/statistics_report.h"
#include "apps/cli/attention_figures.h"
#include "apps/cli/attention_output.h"
#include "apps/cli/attention_report.h"
#include "apps/cli/commands.h"
#include "apps/cli/comparison_report.h"
#include "apps/cli/input.h"
#include "apps/cli/program.h"
#include "base/atomic_file.h"
#include "base/error.h"
#include "base/strings.h"
#include "base/version.h"

namespace filigree::cli {
namespace {

namespace fs = std::filesystem;

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
constexpr std::size_t kStrips = 3, kScatterHeads = 5;

struct CompareOptions {
  std::string dense, sparse, out;
  std::string title;
  PromptOptions prompts;
  std::string heads = "*";      // of the grid
  std::string order = "layer";  // layer, role, or heads
  std::string strips, scatter;
  std::vector<std::string> formats = {"svg", "png"};
  FigureStyle style;
  bool data = false;
};

struct Compared {
  std::vector<PromptModel> models;
  std::vector<std::int64_t> parameters;
  std::vector<HeadId> heads;
  PromptSet prompts;
  std::vector<AnalysedModel> analysed;
  std::vector<std::vector<HeadRole>> roles;
  std::vector<ComparedStatistic> comparison;
  std::vector<std::vector<std::string>> packed;  // maps of the page, by model and prompt
  std::int64_t page_tokens = 0;
  std::size_t page_prompts = 0;
};

// "L9H1,L3H0": heads in the order given, each once.
std::vector<HeadId> parse_order(const std::string& text, const ModelConfig& config) {
  std::vector<HeadId> order;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    for (const HeadId& head :
         parse_heads(text.substr(begin, end - begin), config.layers, config.heads))
      if (std::find(order.begin(), order.end(), head) == order.end()) order.push_back(head);
    begin = end + 1;
  }
  return order;
}

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

// Places of the grid's heads in each panel, and their roles.
struct GridOrder {
  std::vector<std::vector<HeadRole>> roles;
  std::vector<std::vector<std::size_t>> order;
};

GridOrder order_grid(const CompareOptions& options, const Compared& compared,
                     const std::vector<HeadId>& grid_heads) {
  GridOrder result;
  for (std::size_t m = 0; m < 2; ++m) {
    std::vector<HeadRole> roles;
    for (const HeadId& head : grid_heads) {
      const auto slot = std::find(compared.heads.begin(), compared.heads.end(), head);
      roles.push_back(compared.roles[m][static_cast<std::size_t>(slot - compared.heads.begin())]);
    }
    std::vector<std::size_t> order(grid_heads.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (options.order == "role") {
      std::stable_sort(order.begin(), order.end(),
                       [&](std::size_t a, std::size_t b) { return roles[a].name < roles[b].name; });
    } else if (options.order != "layer") {
      const std::vector<HeadId> wanted = parse_order(options.order, compared.models[0].config);
      const auto rank = [&](std::size_t place) {
        return std::find(wanted.begin(), wanted.end(), grid_heads[place]) - wanted.begin();
      };
      std::stable_sort(order.begin(), order.end(),
                       [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
    }
    result.roles.push_back(std::move(roles));
    result.order.push_back(std::move(order));
  }
  return result;
}

// The heads whose peak weight changed most: those worth seeing side by side.
std::vector<HeadId> most_changed(const Compared& compared) {
  std::vector<std::pair<double, HeadId>> changes;
  for (const ComparedStatistic& row : compared.comparison)
    if (row.group.scope == HeadGroup::Scope::kHead && row.statistic == Statistic::kPeak)
      changes.push_back({std::abs(row.change), {row.group.layer, row.group.head}});
  std::stable_sort(changes.begin(), changes.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<HeadId> heads;
  for (std::size_t i = 0; i < std::min(kStrips, changes.size()); ++i)
    heads.push_back(changes[i].second);
  return heads;
}

// Evenly spread over the clustering, so that they differ.
std::vector<std::size_t> spread_heads(const Compared& compared, const std::string& wanted) {
  std::vector<std::size_t> slots;
  if (!wanted.empty()) {
    for (const HeadId& head : parse_order(wanted, compared.models[0].config))
      slots.push_back(static_cast<std::size_t>(
          std::find(compared.heads.begin(), compared.heads.end(), head) - compared.heads.begin()));
    return slots;
  }
  const std::vector<std::size_t>& order = compared.analysed[1].pairs->clustering.order;
  const std::size_t count = std::min(kScatterHeads, order.size());
  for (std::size_t i = 0; i < count; ++i)
    slots.push_back(order[i * (order.size() - 1) / std::max<std::size_t>(1, count - 1)]);
  std::sort(slots.begin(), slots.end());
  return slots;
}

class Folder {
 public:
  explicit Folder(fs::path root) : root_(std::move(root)) {
    for (const char* part : {"figures", "tables", "data"}) {
      std::error_code error;
      fs::create_directories(root_ / part, error);
      if (error)
        fail("cannot create '{}': {}", printable((root_ / part).string()), error.message());
    }
  }
  fs::path add(const std::string& name) {
    files_.push_back(name);
    return root_ / name;
  }
  const std::vector<std::string>& files() const { return files_; }
  const fs::path& root() const { return root_; }

 private:
  fs::path root_;
  std::vector<std::string> files_;
};

void write_strips(const CompareOptions& options, const Compared& compared, Folder& folder) {
  const std::vector<HeadId> heads = options.strips.empty()
                                        ? most_changed(compared)
                                        : parse_order(options.strips, compared.models[0].config);
  const Prompt& prompt = compared.prompts.prompts[0];
  for (const HeadId& head : heads) {
    StripInput strip;
    strip.head = head;
    strip.first_name = compared.analysed[0].label, strip.second_name = compared.analysed[1].label;
    strip.tokens = prompt.tokens;
    for (std::size_t m = 0; m < 2; ++m) {
      const auto model =
          load_model(model_folder(compared.models[m].name), {.warn_about_values = false});
      capture_maps(*model, std::span(&prompt, 1), CaptureOptions::of({head}, MapKind::kWeights),
                   [&](std::span<const HeadMap> maps) {
                     (m == 0 ? strip.first : strip.second)
                         .assign(maps[0].weights.begin(), maps[0].weights.end());
                   });
    }
    for (const std::string& format : options.formats)
      write_head_strip(strip, folder.add(fmt::format("figures/{}.{}", head_name(head), format)),
                       options.style);
  }
}

void write_figures(const CompareOptions& options, const Compared& compared, const MapGrid& grid,
                   const std::vector<HeadId>& grid_heads, Folder& folder, std::uint64_t seed) {
  const Prompt& prompt = compared.prompts.prompts[0];
  const HeadGroup& whole = compared.analysed[0].statistics->groups().front();
  const auto edges = [&](std::size_t m) {
    return 100.0 * compared.analysed[m].statistics->mean(whole, Statistic::kActiveEdges);
  };
  MapGrid::Text text;
  text.title = options.title;
  text.tokens = prompt.tokens;
  text.prompt = "Prompt: " + fmt::format("{}", fmt::join(prompt.tokens, ""));
  text.metric = fmt::format("Active edges over {} prompts: {:.3g} % ({}), {:.3g} % ({})",
                            compared.prompts.prompts.size(), edges(0), compared.analysed[0].label,
                            edges(1), compared.analysed[1].label);
  const GridOrder order = order_grid(options, compared, grid_heads);
  const std::vector<std::size_t> scatter = spread_heads(compared, options.scatter);
  for (const std::string& format : options.formats) {
    const auto path = [&](const char* name) {
      return folder.add(fmt::format("figures/{}.{}", name, format));
    };
    grid.write(path("grid"), text, options.style, order.roles, order.order);
    write_correlation_map(compared.analysed, path("correlation"), options.style);
    write_scatter_matrix(compared.analysed, scatter, path("scatter"), options.style, seed);
    write_statistics_bars(compared.analysed, compared.comparison, path("statistics"),
                          options.style);
  }
  write_strips(options, compared, folder);
}

std::string roles_csv(const Compared& compared) {
  std::string csv = "model,layer,head,role,confidence";
  for (std::size_t p = 0; p < kPatterns; ++p)
    csv += fmt::format(",{}", name_of(static_cast<Pattern>(p)));
  csv += '\n';
  for (std::size_t m = 0; m < 2; ++m)
    for (std::size_t slot = 0; slot < compared.heads.size(); ++slot) {
      const HeadRole& role = compared.roles[m][slot];
      csv += fmt::format("{},{},{},{},{}", m == 0 ? "first" : "second", compared.heads[slot].layer,
                         compared.heads[slot].head, role.name, role.confidence);
      for (const double score : compared.analysed[m].roles[slot].score)
        csv += fmt::format(",{}", score);
      csv += '\n';
    }
  return csv;
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
  session.print(role_table(compared.analysed, compared.heads) + "\n" +
                comparison_table(compared.comparison, labels[0], labels[1], false) + "\n" +
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
  app.add_option("--format", options->formats, "svg, pdf or png; may be given several times")
      ->check(CLI::Validator(
          [](std::string& name) {
            if (name == "svg" || name == "pdf" || name == "png") return std::string();
            return fmt::format("'{}' is none of svg, pdf and png", printable(name));
          },
          ""))
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("FORMAT")
      ->default_str("svg, png");
  add_figure_options(app, options->style);
  app.add_flag("--maps", options->data, "write every map of every prompt too, as data/maps.npz");
}

}  // namespace filigree::cli
