// filigree logit-attribution: what each part of a model adds to a logit or a difference of logits.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "apps/cli/circuits/task_options.h"
#include "apps/cli/commands.h"
#include "apps/cli/program/figure_options.h"
#include "apps/cli/program/intervention_options.h"
#include "apps/cli/program/program.h"
#include "base/table.h"
#include "filigree/lens_study.h"
#include "filigree/names.h"

namespace filigree::cli {
namespace {

struct AttributionCommand {
  std::vector<std::string> models;
  study::AttributionRequest request;
  std::int64_t top = 15;
  std::string out;
  study::FigureStyle style;
};

void run_attribution(const AttributionCommand& command, Session& session) {
  study::check_figure_file(command.out);
  check_request(command.request);  // before the models are read
  const study::Context context = session.context();
  const std::vector<study::LoadedModel> models = study::load_models(command.models, context);
  const study::AttributionResult result = study::run(command.request, models, context);
  for (const study::AttributedModel& model : result.models)
    if (model.check && !model.check->better_than_chance) session.set_exit_code(kOutOfReach);
  if (!command.out.empty()) {
    const figure::LabelledMaps figure = figure_of(result);
    study::save_figure(&figure, command.out, command.style);
  }
  if (session.json()) {
    study::Json json = to_json(result);
    json["out"] = out_json(command.out);
    return session.print_json(json);
  }
  session.print(text_of(result, static_cast<std::size_t>(command.top)));
}

}  // namespace

void add_logit_attribution(Program& program) {
  const auto command = std::make_shared<AttributionCommand>();
  CLI::App& app = program.add(
      {"logit-attribution",
       "What each head and MLP adds directly to a logit.",
       {"filigree logit-attribution gpt2 --task ioi --out heads.svg",
        "filigree logit-attribution dense sparse --task greater-than --json",
        "filigree logit-attribution gpt2 --prompt \"Hot and\" --answer \" cold\"",
        "filigree logit-attribution gpt2 --prompt \"Paris is in\" --at 2 --ablate L6H11"},
       Computes::kOnDevice},
      [command](Session& session) { run_attribution(*command, session); });
  study::AttributionRequest& request = command->request;
  app.add_option("MODEL", command->models, "model folders or names")->required();
  app.add_option("--task", request.task.name, "name of a task (see task list) or JSONL file")
      ->type_name("TASK");
  app.add_option("--prompt", request.prompt, "one text instead of a task")->type_name("TEXT");
  for (const bool right : {true, false})
    app.add_option(right ? "--answer" : "--wrong", right ? request.answers : request.wrong,
                   right ? "token whose logit counts, with the space before it; may come again"
                         : "token whose logit is taken off; may come again")
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->type_name("TEXT");
  app.add_option("--at", request.at,
                 "position of the prompt's own token, whose logit after those before it counts")
      ->check(whole_number(1, 1 << 20))
      ->type_name("N");
  add_task_options(app, request.task, false);
  add_intervention_options(app, request.interventions);
  app.add_option("--top", command->top, "parts listed for each model")
      ->check(whole_number(0, 1 << 20))
      ->type_name("N")
      ->capture_default_str();
  add_figure_file(app, command->out, command->style);
}

}  // namespace filigree::cli
