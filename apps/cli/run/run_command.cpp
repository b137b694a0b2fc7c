// filigree run: one prompt through a model, with taps read and parts changed.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "apps/cli/commands.h"
#include "apps/cli/program/figure_options.h"
#include "apps/cli/program/input.h"
#include "apps/cli/program/intervention_options.h"
#include "apps/cli/program/program.h"
#include "apps/cli/program/prompt_option.h"
#include "base/table.h"
#include "filigree/lens_study.h"
#include "filigree/names.h"

namespace filigree::cli {
namespace {

struct RunCommand {
  std::string model;
  study::RunRequest request;
  std::string prompts_file;
  std::string out;
};

void run_on_prompts(const RunCommand& command, const Session& session) {
  const study::RunRequest& asked = command.request;
  if (!asked.prompt.empty()) throw UsageError("give either --prompt or --prompts-file");
  if (!asked.steering.empty() || !asked.gradient_of.empty() || !asked.tokens.empty())
    throw UsageError("--steer, --gradient-of and --token are of one prompt: give it as --prompt");
  study::ActivationsRequest request;
  request.prompts.source = read_prompts_file(command.prompts_file);
  request.prompts.chat = asked.chat;
  request.taps = asked.taps, request.interventions = asked.interventions;
  request.out = command.out, request.top = std::min(asked.top, request.top);
  catch_interrupts();
  const study::Context context = session.context();
  const std::vector<study::LoadedModel> models = study::load_models({command.model}, context);
  const study::ActivationsResult result = study::run(request, models, context);
  if (!session.json()) return session.print(text_of(result));
  study::Json json = to_json(result);
  json["out"] = out_json(command.out);
  session.print_json(json);
}

void run_run(const RunCommand& command, const Session& session) {
  if (!command.prompts_file.empty()) return run_on_prompts(command, session);
  if (command.request.prompt.empty())
    throw UsageError("give --prompt TEXT, --ids ID,... or --prompts-file FILE");
  if (!command.out.empty() && !command.out.ends_with(".npz"))
    throw UsageError(fmt::format("--out: '{}' must end in .npz", printable(command.out)));
  if (!command.out.empty() && command.request.taps.empty())
    throw UsageError("--out holds the values of taps; say which with --tap GLOB");
  const study::Context context = session.context();
  const std::vector<study::LoadedModel> models = study::load_models({command.model}, context);
  const study::RunResult result = study::run(command.request, models, context);
  if (!command.out.empty()) study::write_npz(result, command.out);
  if (!session.json()) return session.print(text_of(result));
  study::Json json = to_json(result);
  json["out"] = out_json(command.out);
  session.print_json(json);
}

}  // namespace

void add_run(Program& program) {
  const auto command = std::make_shared<RunCommand>();
  CLI::App& app = program.add(
      {"run",
       "Prompts through a model: read any tap, change any part, compare.",
       {"filigree run gpt2 --prompt \"Paris is in\" --ablate L6H11,L7MLP",
        "filigree run gpt2 --prompt \"Paris is in\" --tap \"*hook_z\" --out z.npz",
        "filigree run gpt2 --prompt \"Paris is in\" --patch \"L5.resid@0=Rome is in\"",
        "filigree run gpt2 --prompt \"Paris is in\" --scale L9H6=2 --token \" France\"",
        "filigree run gpt2 --prompt \"Paris is in\" --steer L5F123=0 --features clt",
        "filigree run gpt2 --prompt \"Paris is in\" --gradient-of \" France\" --json",
        "filigree run gpt2 --prompts-file prompts.txt --tap \"*resid_post\" --out acts"},
       Computes::kOnDevice,
       true},
      [command](Session& session) { run_run(*command, session); });
  study::RunRequest& request = command->request;
  const auto several = [](CLI::Option* option, const char* label) {
    option->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->type_name(label);
  };
  app.add_option("MODEL", command->model, "model folder or name")->required();
  add_prompt_option(app, request.prompt, "text to read");
  add_prompts_file_option(app, command->prompts_file);
  add_chat_option(app, request.chat);
  add_intervention_options(app, request.interventions);
  add_steering_options(app, request.steering, request.features);
  several(
      app.add_option("--tap", request.taps,
                     "taps to read, * for any characters (see info --show taps); logits are those "
                     "of every position; may come again"),
      "GLOB");
  app.add_option("--gradient-of", request.gradient_of,
                 "differentiate the last logit of this token, with the space before it, at every "
                 "tap that is read")
      ->type_name("TEXT");
  several(app.add_option("--token", request.tokens,
                         "token that is listed whatever its rank; may come again"),
          "TEXT");
  app.add_option("--top", request.top, "likeliest next tokens listed")
      ->check(whole_number(0, 1000))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--out", command->out,
                 "file of the taps that are read, with gradients and logits (.npz); of many "
                 "prompts also .safetensors, or a folder of shards")
      ->type_name("FILE");
}

}  // namespace filigree::cli
