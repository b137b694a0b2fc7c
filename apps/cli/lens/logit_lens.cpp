// filigree logit-lens: what a model would predict after each of its layers.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "apps/cli/commands.h"
#include "apps/cli/program/figure_options.h"
#include "apps/cli/program/intervention_options.h"
#include "apps/cli/program/program.h"
#include "apps/cli/program/table.h"
#include "filigree/lens_study.h"
#include "filigree/names.h"

namespace filigree::cli {
namespace {

constexpr std::int64_t kShownPositions = 8;  // of the table; figure and JSON have all

struct LensCommand {
  std::vector<std::string> models;
  study::LensRequest request;
  std::string out;
  study::FigureStyle style;
};

// The likeliest token of every point at the last positions.
std::string grid_text(const study::LensOfModel& found) {
  const std::int64_t first = std::max<std::int64_t>(0, found.lens.positions - kShownPositions);
  std::vector<Table::Column> columns = {{"after"}};
  for (std::int64_t t = first; t < found.lens.positions; ++t)
    columns.push_back({"'" + found.shown[found.ids[static_cast<std::size_t>(t)]] + "'"});
  Table table(columns);
  for (std::size_t p = 0; p < found.lens.points.size(); ++p) {
    std::vector<std::string> cells = {name_of(found.lens.points[p])};
    for (std::int64_t t = first; t < found.lens.positions; ++t) {
      const LensToken& best = found.lens.at(p, t).top[0];
      cells.push_back(fmt::format("'{}' {:.0f} %", found.shown[best.id], 100 * best.probability));
    }
    table.add(std::move(cells));
  }
  return table.text(2);
}

// The last position in full.
std::string last_text(const study::LensOfModel& found, std::size_t top) {
  std::vector<Table::Column> columns = {{"after"}};
  if (found.token)
    columns.insert(columns.end(), {{"rank", Align::kRight}, {"log p", Align::kRight}});
  columns.push_back({"likeliest next tokens"});
  Table table(columns);
  for (std::size_t p = 0; p < found.lens.points.size(); ++p) {
    const LensCell& cell = found.lens.at(p, found.lens.positions - 1);
    std::vector<std::string> cells = {name_of(found.lens.points[p])};
    if (found.token) {
      cells.push_back(std::to_string(cell.rank + 1));
      cells.push_back(fmt::format("{:.2f}", cell.log_probability));
    }
    std::string words;
    for (std::size_t i = 0; i < std::min(top, cell.top.size()); ++i)
      words += fmt::format("{}'{}' {:.1f} %", i == 0 ? "" : ", ", found.shown[cell.top[i].id],
                           100 * cell.top[i].probability);
    cells.push_back(words);
    table.add(std::move(cells));
  }
  return table.text(2);
}

std::string lens_text(const study::LensResult& result) {
  std::string text = changed_text(result.request.interventions);
  for (const study::LensOfModel& found : result.models) {
    text += fmt::format("{}{}\n\n", text.empty() ? "" : "\n", printable(found.label));
    text += grid_text(found);
    text +=
        fmt::format("\n  at the last token{}\n",
                    found.token ? fmt::format(", with the rank of '{}'", found.shown[*found.token])
                                : std::string());
    text += last_text(found, static_cast<std::size_t>(result.request.top));
  }
  return text;
}

void run_lens(const LensCommand& command, const Session& session) {
  study::check_figure_file(command.out);
  const study::Context context = session.context();
  const std::vector<study::LoadedModel> models = study::load_models(command.models, context);
  const study::LensResult result = study::run_logit_lens(command.request, models, context);
  if (!command.out.empty()) {
    const figure::LabelledMaps figure = figure_of(result);
    study::save_figure(&figure, command.out, command.style);
  }
  if (!session.json()) return session.print(lens_text(result));
  study::Json json = to_json(result);
  json["out"] = out_json(command.out);
  session.print_json(json);
}

}  // namespace

void add_logit_lens(Program& program) {
  const auto command = std::make_shared<LensCommand>();
  CLI::App& app =
      program.add({"logit-lens",
                   "What a model would predict after each of its layers.",
                   {"filigree logit-lens gpt2 --prompt \"Paris is in\" --token \" France\"",
                    "filigree logit-lens dense sparse --prompt \"one two one\" --out lens.svg",
                    "filigree logit-lens gpt2 --prompt \"John thanked\" --mid --json",
                    "filigree logit-lens gpt2 --prompt \"Paris is in\" --ablate L6H11,L7MLP"},
                   Computes::kOnDevice},
                  [command](Session& session) { run_lens(*command, session); });
  study::LensRequest& request = command->request;
  app.add_option("MODEL", command->models, "model folders or names")->required();
  app.add_option("--prompt", request.prompt, "text to read")->required()->type_name("TEXT");
  app.add_option("--token", request.token,
                 "token to rank everywhere, with the space before it (default each next token)")
      ->type_name("TEXT");
  app.add_option("--top", request.top, "likeliest tokens listed")
      ->check(whole_number(0, 1000))
      ->type_name("N")
      ->capture_default_str();
  app.add_flag("--mid", request.middle, "also between attention and MLP");
  add_intervention_options(app, request.interventions);
  add_figure_file(app, command->out, command->style);
}

}  // namespace filigree::cli
