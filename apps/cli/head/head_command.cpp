// filigree head: one page that says what a head does, or what all heads of a model do by their
// weights.
#include <CLI/CLI.hpp>

#include <memory>
#include <utility>

#include "apps/cli/attention/prompt_options.h"
#include "apps/cli/commands.h"
#include "apps/cli/program/choices.h"
#include "apps/cli/program/figure_options.h"
#include "apps/cli/program/program.h"
#include "apps/cli/program/show_option.h"
#include "filigree/lens_study.h"

namespace filigree::cli {
namespace {

constexpr const char* kNoTwin = "none";

struct HeadCommand {
  std::string model, head;  // no head: all of them
  std::string twin;
  PromptOptions prompts;
  study::HeadRequest page;
  study::HeadCircuitsRequest circuits;
  std::int64_t top = 10;
  ShowOption show;
  std::string out;
  study::FigureStyle style;
};

void print(study::Json json, const HeadCommand& command, const Session& session) {
  json["out"] = out_json(command.out);
  session.print_json(json);
}

void run_page(const HeadCommand& command, const Session& session) {
  if (!command.circuits.heads.empty() || !command.circuits.from.empty() ||
      !command.circuits.text.empty() || !command.show.empty())
    throw UsageError("--heads, --token, --text and --show are of all heads: leave HEAD out");
  study::HeadRequest request = command.page;
  request.head = command.head;
  request.prompts = prompt_request(command.prompts);
  request.top = static_cast<std::size_t>(command.top);
  catch_interrupts();
  const study::Context context = session.context();
  std::string twin = command.twin == kNoTwin ? "" : command.twin;
  // Of a model with an adapter the twin is the same one without.
  if (command.twin.empty())
    twin = context.adapter.empty() ? study::counterpart(command.model).value_or("") : command.model;
  std::vector<std::string> names = {command.model};
  if (!twin.empty()) names.push_back(twin);
  const std::vector<study::LoadedModel> models = study::load_models(names, context, {}, 0);
  const study::HeadPage page = study::run(request, models, context);
  if (!command.out.empty()) {
    const figure::HeadPage figure = figure_of(page);
    study::save_figure(&figure, command.out, command.style);
  }
  if (session.json()) return print(to_json(page), command, session);
  session.print(text_of(page));
}

void run_circuits(const HeadCommand& command, const Session& session) {
  const PromptOptions& prompts = command.prompts;
  if (!command.page.tasks.empty() || !command.twin.empty() || !prompts.texts.empty() ||
      !prompts.file.empty() || !prompts.shards.folder.empty())
    throw UsageError(
        "--task, --twin, --prompt, --prompts-file and --data are of one head: name it, as L6H11");
  study::HeadCircuitsRequest request = command.circuits;
  request.input = command.page.input;
  request.top = static_cast<std::size_t>(command.top);
  check_request(request);  // before the model is read
  const study::Context context = session.context();
  const std::vector<study::LoadedModel> models = study::load_models({command.model}, context);
  const study::HeadCircuits found = study::run(request, models[0], context);
  if (!command.out.empty()) {
    const figure::LabelledMaps figure = figure_of(found);
    study::save_figure(&figure, command.out, command.style);
  }
  if (!session.json()) return session.print(text_of(found));
  print(to_json(found,
                command.show.has("matrices") ? study::Matrices::kEvery : study::Matrices::kLeftOut),
        command, session);
}

void add_page_options(CLI::App& app, HeadCommand& command) {
  study::HeadRequest& request = command.page;
  app.add_option("--twin", command.twin,
                 "model in which its twin is looked for; none looks for none (default of a bundled "
                 "model its counterpart, dense or sparse)")
      ->type_name("MODEL");
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
  add_choice(app, "--replacement", request.replacement, "what takes its place in tasks");
  add_prompt_options(app, command.prompts);
}

void add_circuits_options(CLI::App& app, HeadCommand& command) {
  app.add_option("--heads", command.circuits.heads,
                 "of all heads: those whose token pairs are listed, such as L5H1,L6H*")
      ->check(head_list())
      ->type_name("HEADS");
  app.add_option("--token", command.circuits.from,
                 "of all heads: only pairs that begin with this token, with the space before it; "
                 "may come again")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("TEXT");
  app.add_option("--text", command.circuits.text,
                 "of all heads: text that --input text takes the mean of, and that heads of a "
                 "sparse model must open on (default held-out.txt and sentences of the tasks)")
      ->type_name("FILE");
  command.show.add(app, {"matrices"},
                   "of all heads, with --json: the composition scores of every pair");
}

}  // namespace

void add_head(Program& program) {
  const auto command = std::make_shared<HeadCommand>();
  CLI::App& app = program.add(
      {"head",
       "What one head does, or what all heads copy, look for and read of each other.",
       {"filigree head sparse-12x12 L6H11", "filigree head sparse-12x12 L6H11 --out head.svg",
        "filigree head gpt2 L9H6 --task ioi --prompts 64 --replacement mean",
        "filigree head dense L5H1 --twin sparse --prompts-file prompts.txt --json",
        "filigree head gpt2 --out composition.svg",
        "filigree head gpt2 --heads L9H6 --token \" Mary\" --token \" Paris\""},
       Computes::kNothing,
       true},
      [command](Session& session) {
        study::check_figure_file(command->out);
        if (command->head.empty())
          run_circuits(*command, session);
        else
          run_page(*command, session);
      });
  app.add_option("MODEL", command->model, "model folder or name")->required();
  app.add_option("HEAD", command->head, "the head, L6H11; without it all heads, by their weights")
      ->check(head_list());
  add_page_options(app, *command);
  add_circuits_options(app, *command);
  add_choice(app, "--input", command->page.input,
             "what stands for a token where weights read it: its embedding, that as the MLP of "
             "layer 0 leaves it, or the mean of what the layer reads for it in prompts or text");
  app.add_option("--top", command->top, "rows of each list")
      ->check(whole_number(1, 1000))
      ->type_name("N")
      ->capture_default_str();
  add_figure_file(app, command->out);
  Knobs knobs = knobs_of(command->circuits);
  knobs.add(knobs_of(command->style));
  program.add_knobs(app, std::move(knobs));
}

}  // namespace filigree::cli
