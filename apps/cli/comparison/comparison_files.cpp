#include "apps/cli/comparison/comparison_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "apps/cli/program/input.h"
#include "filigree/base/atomic_file.h"
#include "filigree/base/error.h"
#include "filigree/base/strings.h"

namespace filigree::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kStrips = 3, kScatterHeads = 5;

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
    for (const figure::Format format : options.formats)
      write_head_strip(strip,
                       folder.add(fmt::format("figures/{}.{}", head_name(head), name_of(format))),
                       options.style);
  }
}

}  // namespace

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

Folder::Folder(fs::path root) : root_(std::move(root)) {
  for (const char* part : {"figures", "tables", "data"}) {
    std::error_code error;
    fs::create_directories(root_ / part, error);
    if (error) fail("cannot create '{}': {}", printable((root_ / part).string()), error.message());
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
  for (const figure::Format format : options.formats) {
    const auto path = [&](const char* name) {
      return folder.add(fmt::format("figures/{}.{}", name, name_of(format)));
    };
    grid.write(path("grid"), text, options.style, order.roles, order.order);
    write_correlation_map(compared.analysed, path("correlation"), options.style);
    write_scatter_matrix(compared.analysed, scatter, path("scatter"), options.style, seed);
    write_statistics_bars(compared.analysed, compared.comparison, path("statistics"),
                          options.style);
  }
  write_strips(options, compared, folder);
}

std::vector<ReportTask> write_tasks(const CompareOptions& options, const Compared& compared,
                                    std::span<const study::LoadedModel> models, Folder& folder) {
  std::vector<ReportTask> sections;
  std::map<std::string, int> names;  // files of one name in several folders are numbered
  for (const study::TaskCircuits& found : compared.tasks) {
    const study::TaskFigures figures = task_figures(found, models);
    sections.push_back(task_section(found, figures, options.style));
    std::string name = study::task_file_part(found.task());
    if (const int number = ++names[name]; number > 1) name += fmt::format("-{}", number);
    for (const figure::Format format : options.formats) {
      const auto path = [&](const char* what) {
        return folder.add(fmt::format("figures/{}-{}.{}", name, what, name_of(format)));
      };
      if (figures.curves) study::save_figure(&*figures.curves, path("curves"), options.style);
      if (figures.grid) study::save_figure(&*figures.grid, path("heads"), options.style);
      if (figures.drawing) study::save_figure(&*figures.drawing, path("edges"), options.style);
    }
    if (const study::CircuitsOfKind* edges = found.find(study::Parts::kEdges))
      for (const study::DotFile& dot : dots_of(*edges))
        write_file_atomically(folder.add(fmt::format("data/{}-edges-{}.dot", name, dot.name)),
                              dot.text);
  }
  return sections;
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

}  // namespace filigree::cli
