// filigree head-circuits: what heads copy, look for and read of each other, by their weights alone.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "apps/cli/commands.h"
#include "apps/cli/program/choices.h"
#include "apps/cli/program/figure_options.h"
#include "apps/cli/program/program.h"
#include "apps/cli/program/table.h"
#include "filigree/lens_study.h"

namespace filigree::cli {
namespace {

struct HeadCircuitsCommand {
  std::string model;
  study::HeadCircuitsRequest request;
  bool matrices = false;
  std::string out;
  study::FigureStyle style;
};

// Heads by one of their scores, the highest first.
std::vector<std::size_t> ordered(const study::HeadCircuits& found,
                                 double HeadCircuitScores::*score) {
  std::vector<std::size_t> order(found.scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return found.scores[a].*score > found.scores[b].*score;
  });
  return order;
}

std::string scores_text(const study::HeadCircuits& found) {
  const auto copying = ordered(found, &HeadCircuitScores::copying);
  const auto matching = ordered(found, &HeadCircuitScores::matching);
  Table table({{"copies"},
               {"OV score", Align::kRight},
               {"   looks for itself"},
               {"QK score", Align::kRight}});
  for (std::size_t i = 0; i < std::min(copying.size(), found.request.top); ++i)
    table.add({head_name(found.listed[copying[i]]),
               fmt::format("{:+.3f}", found.scores[copying[i]].copying),
               "   " + head_name(found.listed[matching[i]]),
               fmt::format("{:+.3f}", found.scores[matching[i]].matching)});
  return table.text(2);
}

std::string composition_text(const study::HeadCircuits& found) {
  const std::vector<std::vector<study::ComposedPair>> lists = {
      found.strongest(Composition::kQuery), found.strongest(Composition::kKey),
      found.strongest(Composition::kValue)};
  Table table({{"Q-composition"},
               {"score", Align::kRight},
               {"   K-composition"},
               {"score", Align::kRight},
               {"   V-composition"},
               {"score", Align::kRight}});
  for (std::size_t i = 0; i < lists[0].size(); ++i) {
    std::vector<std::string> cells;
    for (const std::vector<study::ComposedPair>& pairs : lists) {
      cells.push_back(fmt::format("{}{} -> {}", cells.empty() ? "" : "   ",
                                  head_name(pairs[i].earlier), head_name(pairs[i].later)));
      cells.push_back(fmt::format("{:.3f}", pairs[i].score));
    }
    table.add(std::move(cells));
  }
  return table.text(2);
}

std::string pairs_text(const study::HeadCircuits& found, const study::PairsOfHead& pairs) {
  Table table({{"reads"},
               {"raises"},
               {"by", Align::kRight},
               {"   query"},
               {"looks for"},
               {"score", Align::kRight}});
  const auto quoted = [&](TokenId id) { return "'" + found.shown[id] + "'"; };
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
  return fmt::format("\n{}\n", head_name(pairs.head)) + table.text(2);
}

std::string circuits_text(const study::HeadCircuits& found) {
  std::string text;
  if (found.alive)
    text += fmt::format("{} heads ever open on {}: only these are listed\n",
                        study::count_text(found.alive->heads), found.alive->source);
  text += fmt::format("shares of positive eigenvalues, from -1 to 1, of {}{}\n{}",
                      description_of(found.request.input),
                      found.text.empty() ? "" : " of " + found.text, scores_text(found));
  if (!found.strongest(Composition::kQuery).empty())
    text += fmt::format("\nhow much later heads read of earlier ones; random matrices: {:.3f}{}\n",
                        found.composition.random,
                        found.request.less_random ? ", taken off the scores" : "") +
            composition_text(found);
  for (const study::PairsOfHead& pairs : found.pairs) text += pairs_text(found, pairs);
  return text;
}

void run_head_circuits(const HeadCircuitsCommand& command, const Session& session) {
  study::check_figure_file(command.out);
  check_request(command.request);  // before the model is read
  const study::Context context = session.context();
  const std::vector<study::LoadedModel> models = study::load_models({command.model}, context);
  const study::HeadCircuits found = study::find_head_circuits(command.request, models[0], context);
  if (!command.out.empty()) {
    const figure::LabelledMaps figure = figure_of(found);
    study::save_figure(&figure, command.out, command.style);
  }
  if (!session.json()) return session.print(circuits_text(found));
  study::Json json =
      to_json(found, command.matrices ? study::Matrices::kEvery : study::Matrices::kLeftOut);
  json["out"] = out_json(command.out);
  session.print_json(json);
}

}  // namespace

void add_head_circuits(Program& program) {
  const auto command = std::make_shared<HeadCircuitsCommand>();
  CLI::App& app =
      program.add({"head-circuits",
                   "What heads copy, look for and read of each other, by their weights.",
                   {"filigree head-circuits gpt2 --out composition.svg",
                    "filigree head-circuits gpt2 --heads L5H1,L6H9 --top 20",
                    "filigree head-circuits gpt2 --heads L9H6 --from \" Mary\" --from \" Paris\"",
                    "filigree head-circuits gpt2 --heads L9H6 --input text --text book.txt",
                    "filigree head-circuits sparse --less-random --matrices --json"}},
                  [command](Session& session) { run_head_circuits(*command, session); });
  study::HeadCircuitsRequest& request = command->request;
  app.add_option("MODEL", command->model, "model folder or name")->required();
  app.add_option("--heads", request.heads, "heads whose token pairs are listed: L5H1,L6H*")
      ->check(head_list())
      ->type_name("HEADS");
  app.add_option("--from", request.from,
                 "only pairs that begin with this token, with the space before it; may come again")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("TEXT");
  add_choice(app, "--input", request.input,
             "what stands for a token where weights read it: its embedding, that as the MLP of "
             "layer 0 leaves it, or the mean of what the layer reads for it over a text");
  app.add_option(
         "--text", request.text,
         "text on which heads of a sparse model must open to be listed, and of --input text "
         "(default held-out.txt and sentences of the tasks)")
      ->type_name("FILE");
  app.add_flag("--less-random", request.less_random,
               "take the expected score of random matrices off the composition scores");
  app.add_flag("--matrices", command->matrices, "with --json: the scores of all pairs of heads");
  app.add_option("--top", request.top, "rows of each table")
      ->check(whole_number(0, 100000))
      ->type_name("N")
      ->capture_default_str();
  add_figure_file(app, command->out, command->style);
}

}  // namespace filigree::cli
