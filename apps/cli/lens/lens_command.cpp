// filigree lens: what a model would predict after each of its layers, and what each part adds to a
// logit.
#include <CLI/CLI.hpp>

#include <memory>
#include <utility>

#include "apps/cli/circuits/task_options.h"
#include "apps/cli/commands.h"
#include "apps/cli/program/choices.h"
#include "apps/cli/program/figure_options.h"
#include "apps/cli/program/input.h"
#include "apps/cli/program/intervention_options.h"
#include "apps/cli/program/program.h"
#include "apps/cli/program/prompt_option.h"
#include "filigree/lens_study.h"

namespace filigree::cli {
namespace {

constexpr const char *kLayers = "layers", *kSublayers = "sublayers", *kParts = "parts";

struct LensCommand {
  std::vector<std::string> models;
  std::string view;  // empty: parts with a task or an answer, else layers
  std::optional<std::string> prompt;
  bool chat = false;
  study::LensRequest lens;
  study::AttributionRequest attribution;
  std::optional<std::int64_t> top;
  std::string out;
  study::FigureStyle style;
};

template <typename Result>
void print(const Result& result, const std::string& text, const LensCommand& command,
           const Session& session) {
  if (!command.out.empty()) {
    const figure::LabelledMaps figure = figure_of(result);
    study::save_figure(&figure, command.out, command.style);
  }
  if (!session.json()) return session.print(text);
  study::Json json = to_json(result);
  json["out"] = out_json(command.out);
  session.print_json(json);
}

void show_layers(const LensCommand& command, const Session& session) {
  study::LensRequest request = command.lens;
  if (!command.prompt) throw UsageError("give --prompt TEXT, or --task TASK for parts");
  request.prompt = *command.prompt;
  request.chat = command.chat;
  request.top = command.top.value_or(request.top);
  request.middle = command.view == kSublayers;
  request.interventions = command.attribution.interventions;
  const study::Context context = session.context();
  const std::vector<study::LoadedModel> models = study::load_models(command.models, context);
  const study::LensResult result = study::run(request, models, context);
  print(result, text_of(result), command, session);
}

void show_parts(const LensCommand& command, Session& session) {
  if (!command.lens.token.empty())
    throw UsageError("--token goes with layers; parts are of --target");
  study::AttributionRequest request = command.attribution;
  request.prompt = command.prompt.value_or("");
  request.chat = command.chat;
  if (command.chat && !command.prompt) throw UsageError("--chat goes with --prompt");
  check_request(request);  // before the models are read
  const study::Context context = session.context();
  const std::vector<study::LoadedModel> models = study::load_models(command.models, context);
  const study::AttributionResult result = study::run(request, models, context);
  for (const study::AttributedModel& model : result.models)
    if (model.check && !model.check->better_than_chance) session.set_exit_code(kOutOfReach);
  constexpr std::int64_t kListed = 15;
  print(result, text_of(result, static_cast<std::size_t>(command.top.value_or(kListed))), command,
        session);
}

void run_lens(const LensCommand& command, Session& session) {
  study::check_figure_file(command.out);
  const study::AttributionRequest& asked = command.attribution;
  const bool of_parts = !asked.task.name.empty() || !asked.answers.empty() ||
                        !asked.wrong.empty() || asked.at.has_value();
  if (command.view == kParts || (command.view.empty() && of_parts))
    return show_parts(command, session);
  if (of_parts) throw UsageError("--task, --target, --against and at go with --show parts");
  show_layers(command, session);
}

}  // namespace

void add_lens(Program& program) {
  const auto command = std::make_shared<LensCommand>();
  CLI::App& app = program.add(
      {"lens",
       "What a model would predict after each layer, and what each part adds to a logit.",
       {"filigree lens gpt2 --prompt \"Paris is in\" --token \" France\"",
        "filigree lens dense sparse --prompt \"one two one\" --out lens.svg",
        "filigree lens gpt2 --prompt \"Paris is in\" --ablate L6H11,L7MLP",
        "filigree lens gpt2 --task ioi --out heads.svg",
        "filigree lens gpt2 --prompt \"Hot and\" --target \" cold\" --against \" hot\""},
       Computes::kOnDevice,
       true},
      [command](Session& session) { run_lens(*command, session); });
  study::AttributionRequest& attribution = command->attribution;
  app.add_option("MODEL", command->models, "model folders or names")->required();
  add_prompt_option(app, command->prompt, "text to read");
  add_chat_option(app, command->chat);
  add_choice(app, "--show", command->view, {kLayers, kSublayers, kParts},
             "predictions after each layer, also between attention and MLP, or what each head and "
             "MLP adds (default parts with --task or --target, else layers)");
  app.add_option("--token", command->lens.token,
                 "token to rank after each layer, with the space before it (default each next "
                 "token)")
      ->type_name("TEXT");
  app.add_option("--task", attribution.task.name,
                 "parts over a task instead of a prompt: name (see task list) or JSONL file")
      ->type_name("TASK");
  for (const bool right : {true, false})
    app.add_option(
           right ? "--target" : "--against", right ? attribution.answers : attribution.wrong,
           right ? "token whose logit parts add to, with the space before it; may come again"
                 : "token whose logit is subtracted; may come again")
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->type_name("TEXT");
  add_task_options(app, attribution.task, false);
  add_intervention_options(app, attribution.interventions);
  app.add_option("--top", command->top, "tokens or parts listed (default 5 tokens, 15 parts)")
      ->check(whole_number(0, 1 << 20))
      ->type_name("N");
  add_figure_file(app, command->out);
  Knobs knobs = knobs_of(attribution);
  knobs.add(knobs_of(command->style));
  program.add_knobs(app, std::move(knobs));
}

}  // namespace filigree::cli
