// filigree patch: a patch at every layer and head, or every layer and position, as a heat map.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "apps/cli/circuits/task_options.h"
#include "apps/cli/circuits/task_text.h"
#include "apps/cli/commands.h"
#include "apps/cli/program/choices.h"
#include "apps/cli/program/figure_options.h"
#include "apps/cli/program/program.h"
#include "apps/cli/program/table.h"
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

std::string strongest_table(const study::SweptSite& site, PatchDirection direction,
                            std::size_t top) {
  Table table(
      {{"place"},
       {direction == PatchDirection::kNoising ? "effect lost" : "effect restored", Align::kRight}});
  std::vector<std::size_t> order = site.order();
  order.resize(std::min(order.size(), top));
  for (const std::size_t cell : order) {
    const Estimate& effect = site.sweep.effects[cell];
    std::string text = fmt::format("{:+.1f} %", 100 * effect.mean);
    if (effect.error) text += fmt::format(" +- {:.1f}", 100 * *effect.error);
    table.add({site.place(cell), text});
  }
  return table.text(2);
}

std::string model_text(const study::SweptModel& model, PatchDirection direction, std::size_t top) {
  const std::vector<TaskPrompt>& all = model.task.prompts.prompts;
  std::string text =
      fmt::format("\n{}\n", printable(model.label)) + dropped_text(model.task.prompts);
  if (model.prompts.size() < all.size())
    text += fmt::format("  {} of {} have the commonest length, {} tokens, and are kept\n",
                        model.prompts.size(), all.size(), model.prompts[0].length());
  text += verdict_text(model.check, model.task.prompts);
  for (const study::SweptSite& site : model.sites)
    text += fmt::format("\n  {} by {}{}: clean {}, corrupt {}\n", name_of(site.site),
                        name_of(site.axis),
                        site.sweep.from_end ? ", positions counted from the end" : "",
                        estimate_text(site.sweep.clean), estimate_text(site.sweep.corrupt)) +
            strongest_table(site, direction, top);
  return text;
}

std::string text_of(const study::PatchResult& result, std::size_t top) {
  const study::LoadedTask& task = result.models[0].task;
  const PatchDirection direction = result.request.direction;
  std::string text =
      fmt::format("{}: {}, corruption {}, {}, {}\n", printable(task.prompts.task), task.description,
                  task.prompts.corruption, name_of(task.metric), name_of(direction));
  for (const study::SweptModel& model : result.models) text += model_text(model, direction, top);
  return text;
}

void run_patch(const PatchCommand& command, Session& session) {
  study::check_figure_file(command.out);
  check_request(command.request);  // before the models are read
  const study::Context context = session.context();
  const std::vector<study::LoadedModel> models = study::load_models(command.models, context);
  const study::PatchResult result = study::sweep_models(command.request, models, context);
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
                    "filigree patch dense sparse --task ioi --site z --direction denoising",
                    "filigree patch gpt2 --task copy --site resid,mlp-out --out blocks.pdf",
                    "filigree patch gpt2 --task ioi --by layer-position --replacement mean --json"},
                   Computes::kOnRanks},
                  [command](Session& session) { run_patch(*command, session); });
  study::PatchRequest& request = command->request;
  app.add_option("MODEL", command->models, "model folders or names, drawn side by side")
      ->required();
  app.add_option("--task", request.task.name, "name of a task (see task list) or JSONL file")
      ->required()
      ->type_name("TASK");
  add_task_options(app, request.task);
  add_choices(app, "--site", request.sites, "what is patched",
              {Site::kResidual, Site::kResidualMid, Site::kAttentionOut, Site::kMlpOut, Site::kZ,
               Site::kQuery, Site::kKey, Site::kValue, Site::kPattern});
  add_choice(app, "--by", request.by,
             "rows and columns (default layer-head where the site has heads)");
  add_choice(app, "--direction", request.direction,
             "corrupt values into clean runs, or clean ones into corrupt runs");
  add_choice(app, "--replacement", request.replacement, "of noising");
  app.add_flag("--one-length", request.one_length,
               "keep the prompts of the commonest length only, so that positions mean the same");
  app.add_option("--top", command->top, "places listed for each site")
      ->check(whole_number(0, 1 << 20))
      ->type_name("N")
      ->capture_default_str();
  add_figure_file(app, command->out, command->style);
}

}  // namespace filigree::cli
