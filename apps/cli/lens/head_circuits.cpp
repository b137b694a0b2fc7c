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
#include "base/table.h"
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

void run_head_circuits(const HeadCircuitsCommand& command, const Session& session) {
  study::check_figure_file(command.out);
  check_request(command.request);  // before the model is read
  const study::Context context = session.context();
  const std::vector<study::LoadedModel> models = study::load_models({command.model}, context);
  const study::HeadCircuits found = study::run(command.request, models[0], context);
  if (!command.out.empty()) {
    const figure::LabelledMaps figure = figure_of(found);
    study::save_figure(&figure, command.out, command.style);
  }
  if (!session.json()) return session.print(text_of(found));
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
