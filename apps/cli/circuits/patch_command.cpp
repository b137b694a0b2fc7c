// filigree patch: a patch at every layer and head, or every layer and position, as a heat map.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "apps/cli/circuits/task_options.h"
#include "apps/cli/commands.h"
#include "apps/cli/program/choices.h"
#include "apps/cli/program/figure_options.h"
#include "apps/cli/program/program.h"
#include "base/table.h"
#include "filigree/circuit_study.h"
#include "filigree/names.h"

namespace filigree::cli {
namespace {

struct PatchCommand {
  std::vector<std::string> models;
  study::PatchRequest request;
  std::int64_t top = 10;
  std::string out;
  study::FigureStyle style;
};

void run_patch(const PatchCommand& command, Session& session) {
  study::check_figure_file(command.out);
  check_request(command.request);  // before the models are read
  const study::Context context = session.context();
  const std::vector<study::LoadedModel> models = study::load_models(command.models, context);
  const study::PatchResult result = study::run(command.request, models, context);
  for (const study::SweptModel& model : result.models)
    if (!model.check.better_than_chance || model.sites.empty()) session.set_exit_code(kOutOfReach);
  if (!command.out.empty() && session.writes())
    if (const auto figure = figure_of(result))
      study::save_figure(&*figure, command.out, command.style);
  if (!session.json()) return session.print(text_of(result, static_cast<std::size_t>(command.top)));
  study::Json json = to_json(result);
  json["out"] = out_json(command.out);
  session.print_json(json);
}

}  // namespace

void add_patch(Program& program) {
  const auto command = std::make_shared<PatchCommand>();
  CLI::App& app =
      program.add({"patch",
                   "Patch a task's runs at every layer and head or position; a heat map.",
                   {"filigree patch gpt2 --task ioi --out heads.svg",
                    "filigree patch dense sparse --task ioi --site z --set direction=denoising",
                    "filigree patch gpt2 --task copy --site resid,mlp-out --out blocks.pdf",
                    "filigree patch gpt2 --task ioi --set by=layer-position --replacement mean"},
                   Computes::kOnRanks,
                   true},
                  [command](Session& session) { run_patch(*command, session); });
  study::PatchRequest& request = command->request;
  app.add_option("MODEL", command->models, "model folders or names, drawn side by side")
      ->required();
  app.add_option("--task", request.task.name, "name of a task (see task list) or JSONL file")
      ->required()
      ->type_name("TASK");
  add_task_options(app, request.task);
  add_choices(app, "--site", request.sites, "what is patched",
              {Site::kResidual, Site::kResidualMid, Site::kAttentionOut, Site::kMlpOut,
               Site::kExpertOut, Site::kZ, Site::kQuery, Site::kKey, Site::kValue, Site::kPattern});
  add_choice(app, "--replacement", request.replacement, "of noising");
  app.add_option("--top", command->top, "places listed for each site")
      ->check(whole_number(0, 1 << 20))
      ->type_name("N")
      ->capture_default_str();
  add_figure_file(app, command->out);
  Knobs knobs = knobs_of(request);
  knobs.add(knobs_of(command->style));
  program.add_knobs(app, std::move(knobs));
}

}  // namespace filigree::cli
