// filigree logit-lens: what a model would predict after each of its layers.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "apps/cli/commands.h"
#include "apps/cli/program/figure_options.h"
#include "apps/cli/program/intervention_options.h"
#include "apps/cli/program/program.h"
#include "base/table.h"
#include "filigree/lens_study.h"
#include "filigree/names.h"

namespace filigree::cli {
namespace {

struct LensCommand {
  std::vector<std::string> models;
  study::LensRequest request;
  std::string out;
  study::FigureStyle style;
};

void run_lens(const LensCommand& command, const Session& session) {
  study::check_figure_file(command.out);
  const study::Context context = session.context();
  const std::vector<study::LoadedModel> models = study::load_models(command.models, context);
  const study::LensResult result = study::run(command.request, models, context);
  if (!command.out.empty()) {
    const figure::LabelledMaps figure = figure_of(result);
    study::save_figure(&figure, command.out, command.style);
  }
  if (!session.json()) return session.print(text_of(result));
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
