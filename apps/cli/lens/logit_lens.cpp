// filigree logit-lens: what a model would predict after each of its layers.
#include "filigree/analyze/lens/logit_lens.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <numeric>

#include "apps/cli/commands.h"
#include "apps/cli/program/figure_options.h"
#include "apps/cli/program/input.h"
#include "apps/cli/program/program.h"
#include "apps/cli/program/table.h"
#include "apps/cli/program/token_input.h"
#include "filigree/base/error.h"
#include "filigree/base/strings.h"

namespace filigree::cli {

using study::FigureStyle;

namespace {

constexpr std::int64_t kShownPositions = 8;  // of the table; figure and JSON have all

struct LensCommand {
  std::vector<std::string> models;
  std::string prompt, token;
  std::int64_t top = 5;
  bool middle = false;
  std::string figure;
  FigureStyle style;
};

struct LensOfModel {
  std::string model, label;
  std::vector<TokenId> ids;
  std::vector<std::string> tokens;
  LogitLens lens;
  std::optional<TokenId> token;
  Tokenizer tokenizer;
};

LensOfModel look(const std::string& name, const std::string& label, const LensCommand& command,
                 const Session& session) {
  LensOfModel found = {name, label, {}, {}, {}, {}, open_tokenizer(model_folder(name).string())};
  const ModelConfig config = read_model_config(model_folder(name));
  found.ids = encode_text(found.tokenizer, command.prompt, "the prompt");
  require(!found.ids.empty(), "the prompt is empty; the lens needs at least one token");
  require(static_cast<std::int64_t>(found.ids.size()) <= config.context,
          "the prompt has {} tokens, more than the context of {} of '{}'", found.ids.size(),
          config.context, printable(name));
  check_ids(found.ids, config.vocabulary, name);
  for (const TokenId id : found.ids) found.tokens.push_back(shown_token(found.tokenizer, id));
  LensOptions options;
  options.top = std::max<std::int64_t>(command.top, 1), options.middle = command.middle;
  if (!command.token.empty())
    found.token = options.token = single_token(found.tokenizer, command.token, "--token", config);
  const std::unique_ptr<Model> model =
      load_model(model_folder(name), {.placement = session.placement()});
  std::unique_ptr<Progress> bar;
  options.progress = [&](std::size_t done, std::size_t total) {
    throw_if_interrupted();
    if (!bar)
      bar = std::make_unique<Progress>(
          std::cerr, session.progress(label, "layers", static_cast<std::int64_t>(total)));
    bar->update(static_cast<std::int64_t>(done));
    if (done == total) bar->finish();
  };
  found.lens = logit_lens(*model, found.ids, options);
  return found;
}

// The likeliest token of every point at the last positions.
std::string grid_text(const LensOfModel& found) {
  const std::int64_t first = std::max<std::int64_t>(0, found.lens.positions - kShownPositions);
  std::vector<Table::Column> columns = {{"after"}};
  for (std::int64_t t = first; t < found.lens.positions; ++t)
    columns.push_back({"'" + found.tokens[static_cast<std::size_t>(t)] + "'"});
  Table table(columns);
  for (std::size_t p = 0; p < found.lens.points.size(); ++p) {
    std::vector<std::string> cells = {name_of(found.lens.points[p])};
    for (std::int64_t t = first; t < found.lens.positions; ++t) {
      const LensToken& best = found.lens.at(p, t).top[0];
      cells.push_back(fmt::format("'{}' {:.0f} %", shown_token(found.tokenizer, best.id),
                                  100 * best.probability));
    }
    table.add(std::move(cells));
  }
  return table.text(2);
}

// The last position in full.
std::string last_text(const LensOfModel& found, std::size_t top) {
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
      words +=
          fmt::format("{}'{}' {:.1f} %", i == 0 ? "" : ", ",
                      shown_token(found.tokenizer, cell.top[i].id), 100 * cell.top[i].probability);
    cells.push_back(words);
    table.add(std::move(cells));
  }
  return table.text(2);
}

std::string lens_text(const LensCommand& command, const std::vector<LensOfModel>& models) {
  std::string text;
  for (const LensOfModel& found : models) {
    text += fmt::format("{}{}\n\n", text.empty() ? "" : "\n", printable(found.label));
    text += grid_text(found);
    text += fmt::format("\n  at the last token{}\n",
                        found.token ? fmt::format(", with the rank of '{}'",
                                                  shown_token(found.tokenizer, *found.token))
                                    : std::string());
    text += last_text(found, static_cast<std::size_t>(command.top));
  }
  return text;
}

Json lens_json(const LensOfModel& found, std::size_t top) {
  Json points = Json::array();
  for (std::size_t p = 0; p < found.lens.points.size(); ++p) {
    Json positions = Json::array();
    for (std::int64_t t = 0; t < found.lens.positions; ++t) {
      const LensCell& cell = found.lens.at(p, t);
      Json words = Json::array();
      for (std::size_t i = 0; i < std::min(top, cell.top.size()); ++i)
        words.push_back({{"token", shown_token(found.tokenizer, cell.top[i].id)},
                         {"id", cell.top[i].id},
                         {"probability", cell.top[i].probability}});
      Json entry = {{"top", words}, {"rank", nullptr}, {"log_probability", nullptr}};
      if (cell.rank >= 0)
        entry["rank"] = cell.rank + 1, entry["log_probability"] = cell.log_probability;
      positions.push_back(entry);
    }
    points.push_back({{"point", name_of(found.lens.points[p])},
                      {"tap", tap_name(found.lens.points[p])},
                      {"positions", positions}});
  }
  return {{"model", found.model},
          {"tokens", found.tokens},
          {"ids", found.ids},
          {"ranked", found.token ? Json(shown_token(found.tokenizer, *found.token))
                                 : Json("the next token of the prompt")},
          {"points", points}};
}

void draw(const LensCommand& command, const std::vector<LensOfModel>& models) {
  figure::LabelledMaps maps;
  maps.title = "Logit lens";
  maps.kind = figure::ScaleKind::kMagnitude;
  maps.end = 1;
  maps.scale_label = command.token.empty()
                         ? "probability of the likeliest token"
                         : fmt::format("probability of '{}'", printable(command.token));
  for (const LensOfModel& found : models) {
    figure::MapPanel panel;
    if (models.size() > 1) panel.title = found.label;
    panel.rows.name = "stream after";
    panel.columns.name = "token read last";
    panel.columns.labels = found.tokens;
    panel.columns.tokens = true;
    // The last layer on top, as the stream rises.
    for (std::size_t p = found.lens.points.size(); p-- > 0;) {
      const LensPoint& point = found.lens.points[p];
      panel.rows.labels.push_back(point.place == LensPlace::kBefore ? "embedding"
                                  : point.place == LensPlace::kMiddle
                                      ? fmt::format("{} attention", point.layer)
                                      : std::to_string(point.layer));
      for (std::int64_t t = 0; t < found.lens.positions; ++t) {
        const LensCell& cell = found.lens.at(p, t);
        panel.values.push_back(static_cast<float>(found.token ? std::exp(cell.log_probability)
                                                              : cell.top[0].probability));
        panel.words.push_back(shown_token(found.tokenizer, cell.top[0].id));
      }
    }
    maps.panels.push_back(std::move(panel));
  }
  maps.caption = "In each cell the likeliest next token, were the stream read out there.";
  study::save_figure(&maps, command.figure, command.style);
}

void run_lens(const LensCommand& command, const Session& session) {
  study::check_figure_file(command.figure);
  for (const std::string& model : command.models) model_folder(model);
  catch_interrupts();
  const std::vector<std::string> labels = short_names(command.models);
  std::vector<LensOfModel> models;
  for (std::size_t i = 0; i < command.models.size(); ++i)
    models.push_back(look(command.models[i], labels[i], command, session));
  if (!command.figure.empty()) draw(command, models);
  if (!session.json()) {
    session.print(lens_text(command, models));
    return;
  }
  Json list = Json::array();
  for (const LensOfModel& found : models)
    list.push_back(lens_json(found, static_cast<std::size_t>(command.top)));
  session.print_json({{"prompt", command.prompt},
                      {"out", command.figure.empty() ? Json() : Json(command.figure)},
                      {"models", list}});
}

}  // namespace

void add_logit_lens(Program& program) {
  const auto command = std::make_shared<LensCommand>();
  CLI::App& app =
      program.add({"logit-lens",
                   "What a model would predict after each of its layers.",
                   {"filigree logit-lens gpt2 --prompt \"Paris is in\" --token \" France\"",
                    "filigree logit-lens dense sparse --prompt \"one two one\" --out lens.svg",
                    "filigree logit-lens gpt2 --prompt \"John thanked\" --mid --json"},
                   Computes::kOnDevice},
                  [command](Session& session) { run_lens(*command, session); });
  app.add_option("MODEL", command->models, "model folders or names")->required();
  app.add_option("--prompt", command->prompt, "text to read")->required()->type_name("TEXT");
  app.add_option("--token", command->token,
                 "token to rank everywhere, with the space before it (default each next token)")
      ->type_name("TEXT");
  app.add_option("--top", command->top, "likeliest tokens listed")
      ->check(whole_number(0, 1000))
      ->type_name("N")
      ->capture_default_str();
  app.add_flag("--mid", command->middle, "also between attention and MLP");
  add_figure_file(app, command->figure, command->style);
}

}  // namespace filigree::cli
