// filigree head: one page that says what a head does.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "apps/cli/attention/prompt_options.h"
#include "apps/cli/commands.h"
#include "apps/cli/program/choices.h"
#include "apps/cli/program/figure_options.h"
#include "apps/cli/program/program.h"
#include "filigree/lens_study.h"

namespace filigree::cli {
namespace {

struct HeadCommand {
  std::string model, twin;
  bool no_twin = false;
  PromptOptions prompts;
  study::HeadRequest request;
  std::string out;
  study::FigureStyle style;
};

void run_head(const HeadCommand& command, const Session& session) {
  if (command.no_twin && !command.twin.empty())
    throw UsageError("--twin and --no-twin exclude each other");
  study::check_figure_file(command.out);
  study::HeadRequest request = command.request;
  request.prompts = prompt_request(command.prompts);
  catch_interrupts();
  const study::Context context = session.context();
  std::string twin = command.twin;
  if (twin.empty() && !command.no_twin) twin = study::counterpart(command.model).value_or("");
  std::vector<std::string> names = {command.model};
  if (!twin.empty()) names.push_back(twin);
  const std::vector<study::LoadedModel> models = study::load_models(names, context);
  const study::HeadPage page = study::run(request, models, context);
  if (!command.out.empty()) {
    const figure::HeadPage figure = figure_of(page);
    study::save_figure(&figure, command.out, command.style);
  }
  if (!session.json()) return session.print(text_of(page));
  study::Json json = to_json(page);
  json["out"] = out_json(command.out);
  session.print_json(json);
}

}  // namespace

void add_head(Program& program) {
  const auto command = std::make_shared<HeadCommand>();
  CLI::App& app = program.add(
      {"head",
       "What one head does: role, edges, copying, composition, effects.",
       {"filigree head sparse-12x12 L6H11", "filigree head sparse-12x12 L6H11 --out head.svg",
        "filigree head gpt2 L9H6 --task ioi --prompts 64 --replacement mean",
        "filigree head dense L5H1 --twin sparse --text prompts.txt --json"}},
      [command](Session& session) { run_head(*command, session); });
  study::HeadRequest& request = command->request;
  app.add_option("MODEL", command->model, "model folder or name")->required();
  app.add_option("HEAD", request.head, "the head: L6H11")->required()->check(head_list());
  app.add_option("--twin", command->twin,
                 "model in which its twin is looked for (default of a bundled model its "
                 "counterpart, dense or sparse)")
      ->type_name("MODEL");
  app.add_flag("--no-twin", command->no_twin, "look for none");
  app.add_option("--task", request.tasks,
                 "name of a task (see task list) or JSONL file; may come again (default every task "
                 "that fits)")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("TASK");
  app.add_option("--prompts", request.task_prompts, "prompts of each task")
      ->check(whole_number(1, 10000))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--task-text", request.text,
                 "text that tasks such as returning-word are drawn from (default held-out.txt of "
                 "the model's folder or of the bundled model, for such tasks of --task alone)")
      ->type_name("FILE");
  add_choice(app, "--input", request.input,
             "what stands for a token where its weights read it: its embedding, that as the MLP of "
             "layer 0 leaves it, or the mean of what its layer reads for it in the prompts");
  add_choice(app, "--replacement", request.replacement, "what takes its place in tasks");
  add_prompt_options(app, command->prompts);
  app.add_option("--top", request.top, "rows of each list")
      ->check(whole_number(1, 1000))
      ->type_name("N")
      ->capture_default_str();
  add_figure_file(app, command->out, command->style);
}

}  // namespace filigree::cli
