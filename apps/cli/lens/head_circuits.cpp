// filigree head-circuits: what heads copy, look for and read of each other, by their weights alone.
#include "filigree/analyze/lens/head_circuits.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <limits>
#include <memory>
#include <numeric>

#include "apps/cli/commands.h"
#include "apps/cli/program/figure_options.h"
#include "apps/cli/program/input.h"
#include "apps/cli/program/program.h"
#include "apps/cli/program/table.h"
#include "apps/cli/program/token_input.h"
#include "filigree/analyze/maps/head_selection.h"
#include "filigree/base/error.h"
#include "filigree/base/log.h"
#include "filigree/base/strings.h"

namespace filigree::cli {

using study::FigureStyle;

namespace {

struct HeadCircuitsCommand {
  std::string model;
  std::string heads;  // whose token pairs are listed
  std::vector<std::string> from;
  bool less_random = false;
  bool matrices = false;
  std::int64_t top = 10;
  std::string figure;
  FigureStyle style;
};

struct HeadPairsFound {
  HeadId head = {};
  std::vector<TokenPair> ov, qk;
};

struct CircuitsFound {
  ModelConfig config;
  std::vector<HeadCircuitScores> scores;
  CompositionScores composition;
  std::vector<HeadPairsFound> pairs;
};

constexpr std::array<const char*, kCompositions> kLetters = {"Q", "K", "V"};

struct ComposedPair {
  std::int64_t earlier = 0, later = 0;
  double score = 0;
};

std::string name_of_head(const CircuitsFound& found, std::int64_t head) {
  return head_name({head / found.config.heads, head % found.config.heads});
}

// Less the expected score of random matrices, where asked.
double score_of(const HeadCircuitsCommand& command, const CircuitsFound& found,
                Composition composition, std::int64_t earlier, std::int64_t later) {
  return found.composition.at(composition, earlier, later) -
         (command.less_random ? found.composition.random : 0);
}

std::vector<ComposedPair> strongest(const HeadCircuitsCommand& command, const CircuitsFound& found,
                                    Composition composition) {
  const std::int64_t H = found.config.heads, all = found.config.layers * H;
  std::vector<ComposedPair> pairs;
  for (std::int64_t a = 0; a < all; ++a)
    for (std::int64_t b = (a / H + 1) * H; b < all; ++b)
      pairs.push_back({a, b, score_of(command, found, composition, a, b)});
  const auto count = std::min(pairs.size(), static_cast<std::size_t>(command.top));
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const auto& a, const auto& b) { return a.score > b.score; });
  pairs.resize(count);
  return pairs;
}

CircuitsFound find(const HeadCircuitsCommand& command, const Tokenizer* tokenizer,
                   const std::vector<HeadId>& chosen, const Session& session) {
  // Weights are read, not run.
  if (session.placement().device != DeviceKind::kCpu)
    warn("head-circuits computes on the CPU, whatever --device says");
  const std::unique_ptr<Model> model = load_model(model_folder(command.model));
  CircuitsFound found;
  found.config = model->config();
  PairOptions options;
  options.top = static_cast<std::size_t>(command.top);
  for (const std::string& text : command.from)
    options.from.push_back(single_token(*tokenizer, text, "--from", found.config));
  const std::vector<HeadMatrices> heads = all_head_matrices(*model);
  throw_if_interrupted();
  found.scores = head_circuit_scores(*model, heads);
  throw_if_interrupted();
  found.composition = composition_scores(*model, heads);
  for (const HeadId& head : chosen) {
    const HeadMatrices& matrices =
        heads[static_cast<std::size_t>(head.layer * found.config.heads + head.head)];
    HeadPairsFound pairs = {head, {}, {}};
    for (const bool ov : {true, false}) {
      const std::string label = fmt::format("{} {}", head_name(head), ov ? "OV" : "QK");
      std::unique_ptr<Progress> bar;
      options.progress = [&](std::int64_t done, std::int64_t total) {
        throw_if_interrupted();
        if (!bar)
          bar = std::make_unique<Progress>(std::cerr, session.progress(label, "tokens", total));
        bar->update(done);
        if (done == total) bar->finish();
      };
      (ov ? pairs.ov : pairs.qk) =
          ov ? top_ov_pairs(*model, matrices, options) : top_qk_pairs(*model, matrices, options);
    }
    found.pairs.push_back(std::move(pairs));
  }
  return found;
}

std::string scores_text(const HeadCircuitsCommand& command, const CircuitsFound& found) {
  const auto ordered = [&](auto&& value) {
    std::vector<std::int64_t> order(found.scores.size());
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return value(static_cast<std::size_t>(a)) > value(static_cast<std::size_t>(b));
    });
    return order;
  };
  const auto copying = ordered([&](std::size_t i) { return found.scores[i].copying; });
  const auto matching = ordered([&](std::size_t i) { return found.scores[i].matching; });
  Table table({{"copies"},
               {"OV score", Align::kRight},
               {"   looks for itself"},
               {"QK score", Align::kRight}});
  for (std::size_t i = 0; i < std::min(copying.size(), static_cast<std::size_t>(command.top)); ++i)
    table.add(
        {name_of_head(found, copying[i]),
         fmt::format("{:+.3f}", found.scores[static_cast<std::size_t>(copying[i])].copying),
         "   " + name_of_head(found, matching[i]),
         fmt::format("{:+.3f}", found.scores[static_cast<std::size_t>(matching[i])].matching)});
  return table.text(2);
}

std::string composition_text(const HeadCircuitsCommand& command, const CircuitsFound& found) {
  std::vector<std::vector<ComposedPair>> lists;
  std::vector<Table::Column> columns;
  for (std::size_t c = 0; c < kCompositions; ++c) {
    const auto composition = static_cast<Composition>(c);
    lists.push_back(strongest(command, found, composition));
    columns.push_back({fmt::format("{}{}-composition", c == 0 ? "" : "   ", kLetters[c])});
    columns.push_back({"score", Align::kRight});
  }
  Table table(columns);
  for (std::size_t i = 0; i < lists[0].size(); ++i) {
    std::vector<std::string> cells;
    for (std::size_t c = 0; c < kCompositions; ++c) {
      const ComposedPair& pair = lists[c][i];
      cells.push_back(fmt::format("{}{} -> {}", c == 0 ? "" : "   ",
                                  name_of_head(found, pair.earlier),
                                  name_of_head(found, pair.later)));
      cells.push_back(fmt::format("{:.3f}", pair.score));
    }
    table.add(std::move(cells));
  }
  return table.text(2);
}

std::string circuits_text(const HeadCircuitsCommand& command, const CircuitsFound& found,
                          const Tokenizer* tokenizer) {
  std::string text = "shares of positive eigenvalues over the vocabulary, from -1 to 1\n" +
                     scores_text(command, found);
  if (found.config.layers > 1)
    text +=
        fmt::format("\nhow much later heads read of earlier ones; random matrices: {:.3f}{}\n",
                    found.composition.random, command.less_random ? ", taken off the scores" : "") +
        composition_text(command, found);
  for (const HeadPairsFound& pairs : found.pairs) {
    Table table({{"reads"},
                 {"raises"},
                 {"by", Align::kRight},
                 {"   query"},
                 {"looks for"},
                 {"score", Align::kRight}});
    const auto quoted = [&](TokenId id) { return "'" + shown_token(*tokenizer, id) + "'"; };
    for (std::size_t i = 0; i < std::max(pairs.ov.size(), pairs.qk.size()); ++i) {
      std::vector<std::string> cells(6);
      if (i < pairs.ov.size())
        cells[0] = quoted(pairs.ov[i].from), cells[1] = quoted(pairs.ov[i].to),
        cells[2] = fmt::format("{:.2f}", pairs.ov[i].score);
      if (i < pairs.qk.size())
        cells[3] = "   " + quoted(pairs.qk[i].from), cells[4] = quoted(pairs.qk[i].to),
        cells[5] = fmt::format("{:.2f}", pairs.qk[i].score);
      table.add(std::move(cells));
    }
    text += fmt::format("\n{}\n", head_name(pairs.head)) + table.text(2);
  }
  return text;
}

Json pairs_json(const std::vector<TokenPair>& pairs, const Tokenizer& tokenizer) {
  Json list = Json::array();
  for (const TokenPair& pair : pairs)
    list.push_back({{"from", shown_token(tokenizer, pair.from)},
                    {"to", shown_token(tokenizer, pair.to)},
                    {"from_id", pair.from},
                    {"to_id", pair.to},
                    {"score", pair.score}});
  return list;
}

Json circuits_json(const HeadCircuitsCommand& command, const CircuitsFound& found,
                   const Tokenizer* tokenizer) {
  Json heads = Json::array(), composition = Json::object(), pairs = Json::array();
  for (std::size_t i = 0; i < found.scores.size(); ++i)
    heads.push_back({{"head", name_of_head(found, static_cast<std::int64_t>(i))},
                     {"copying", found.scores[i].copying},
                     {"matching", found.scores[i].matching}});
  const std::int64_t all = found.config.layers * found.config.heads;
  for (std::size_t c = 0; c < kCompositions; ++c) {
    const auto kind = static_cast<Composition>(c);
    Json list = Json::array();
    for (const ComposedPair& pair : strongest(command, found, kind))
      list.push_back({{"earlier", name_of_head(found, pair.earlier)},
                      {"later", name_of_head(found, pair.later)},
                      {"score", pair.score}});
    Json json = {{"strongest", list}};
    if (command.matrices) {
      Json rows = Json::array();
      for (std::int64_t a = 0; a < all; ++a) {
        Json row = Json::array();
        for (std::int64_t b = 0; b < all; ++b)
          row.push_back(a / found.config.heads < b / found.config.heads
                            ? Json(score_of(command, found, kind, a, b))
                            : Json());
        rows.push_back(row);
      }
      json["scores"] = rows;
    }
    composition[std::string(name_of(kind))] = json;
  }
  for (const HeadPairsFound& one : found.pairs)
    pairs.push_back({{"head", head_name(one.head)},
                     {"ov", pairs_json(one.ov, *tokenizer)},
                     {"qk", pairs_json(one.qk, *tokenizer)}});
  return {{"model", command.model},
          {"out", command.figure.empty() ? Json() : Json(command.figure)},
          {"heads", heads},
          {"random_composition", found.composition.random},
          {"less_random", command.less_random},
          {"composition", composition},
          {"token_pairs", pairs}};
}

void draw(const HeadCircuitsCommand& command, const CircuitsFound& found,
          const std::string& label) {
  require(found.config.layers > 1, "a model of one layer has no heads that compose");
  const std::int64_t L = found.config.layers, H = found.config.heads, all = L * H;
  figure::LabelledMaps maps;
  maps.title = fmt::format("Composition of heads: {}", label);
  maps.kind = command.less_random ? figure::ScaleKind::kDifference : figure::ScaleKind::kMagnitude;
  maps.scale_label = command.less_random ? "score less that of random matrices" : "score";
  for (std::size_t c = 0; c < kCompositions; ++c) {
    const auto composition = static_cast<Composition>(c);
    figure::MapPanel panel;
    panel.title = fmt::format("{}-composition", kLetters[c]);
    panel.rows.name = "earlier head", panel.columns.name = "later head";
    // The last layer writes to no head and the first reads from none.
    for (std::int64_t l = 0; l < L; ++l) {
      figure::AxisGroup group = {layer_name(l), static_cast<std::size_t>(H)};
      if (l + 1 < L) panel.rows.groups.push_back(group);
      if (l > 0) panel.columns.groups.push_back(group);
    }
    for (std::int64_t a = 0; a < all - H; ++a) {
      panel.rows.labels.push_back(name_of_head(found, a));
      for (std::int64_t b = H; b < all; ++b)
        panel.values.push_back(a / H < b / H
                                   ? static_cast<float>(score_of(command, found, composition, a, b))
                                   : std::numeric_limits<float>::quiet_NaN());
    }
    for (std::int64_t b = H; b < all; ++b) panel.columns.labels.push_back(name_of_head(found, b));
    maps.panels.push_back(std::move(panel));
  }
  maps.caption = fmt::format(
      "How much a later head reads, as its query, key or value, of what an earlier one writes. "
      "Random matrices of this size: {:.3f}.",
      found.composition.random);
  study::save_figure(&maps, command.figure, command.style);
}

void run_head_circuits(const HeadCircuitsCommand& command, const Session& session) {
  study::check_figure_file(command.figure);
  const ModelConfig config = read_model_config(model_folder(command.model));
  if (!command.from.empty() && command.heads.empty())
    throw UsageError("--from chooses among token pairs; say of which head with --head");
  std::vector<HeadId> chosen;
  if (!command.heads.empty()) chosen = parse_heads(command.heads, config.layers, config.heads);
  std::optional<Tokenizer> tokenizer;
  if (!chosen.empty()) tokenizer = open_tokenizer(model_folder(command.model).string());
  catch_interrupts();
  const Tokenizer* words = tokenizer ? &*tokenizer : nullptr;
  const CircuitsFound found = find(command, words, chosen, session);
  if (!command.figure.empty()) draw(command, found, short_names({command.model})[0]);
  if (session.json())
    session.print_json(circuits_json(command, found, words));
  else
    session.print(circuits_text(command, found, words));
}

}  // namespace

void add_head_circuits(Program& program) {
  const auto command = std::make_shared<HeadCircuitsCommand>();
  CLI::App& app =
      program.add({"head-circuits",
                   "What heads copy, look for and read of each other, by their weights.",
                   {"filigree head-circuits gpt2 --out composition.svg",
                    "filigree head-circuits gpt2 --head L5H1,L6H9 --top 20",
                    "filigree head-circuits gpt2 --head L9H6 --from \" Mary\" --from \" Paris\"",
                    "filigree head-circuits sparse --less-random --matrices --json"}},
                  [command](Session& session) { run_head_circuits(*command, session); });
  app.add_option("MODEL", command->model, "model folder or name")->required();
  app.add_option("--head", command->heads, "heads whose token pairs are listed: L5H1,L6H*")
      ->type_name("HEADS");
  app.add_option("--from", command->from,
                 "only pairs that begin with this token, with the space before it; may come again")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("TEXT");
  app.add_flag("--less-random", command->less_random,
               "take the expected score of random matrices off the composition scores");
  app.add_flag("--matrices", command->matrices, "with --json: the scores of all pairs of heads");
  app.add_option("--top", command->top, "rows of each table")
      ->check(whole_number(0, 100000))
      ->type_name("N")
      ->capture_default_str();
  add_figure_file(app, command->figure, command->style);
}

}  // namespace filigree::cli
