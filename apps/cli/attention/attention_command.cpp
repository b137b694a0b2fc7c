// filigree attention: the attention maps of a model or two, on prompts, and what they show.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <memory>

#include "apps/cli/attention/prompt_options.h"
#include "apps/cli/commands.h"
#include "apps/cli/program/choices.h"
#include "apps/cli/program/intervention_options.h"
#include "apps/cli/program/program.h"
#include "apps/cli/program/show_option.h"
#include "base/file_status.h"
#include "filigree/attention_study.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "filigree/study.h"
#include "hub/hub_name.h"

namespace filigree::cli {
namespace {

struct AttentionCommand {
  std::vector<std::string> models;
  PromptOptions prompts;
  std::vector<std::string> out;
  study::AttentionRequest request;
  ShowOption show;
};

study::AttentionRequest request_of(const AttentionCommand& command) {
  study::AttentionRequest request = command.request;
  request.prompts = prompt_request(command.prompts);
  if (request.prompts.empty())
    throw UsageError("give prompts: --prompt TEXT, --prompts-file FILE or --data SHARDS");
  request.files.assign(command.out.begin(), command.out.end());
  if (request.average && request.files.empty())
    throw UsageError("--set average=true goes with --out FILE");
  request.roles = command.show.has("roles");
  request.statistics = command.show.has("statistics") || command.show.has("heads");
  request.pairs = command.show.has("pairs");
  // Without a wish, the two that fit a terminal.
  if (request.files.empty() && !request.roles && !request.statistics && !request.pairs)
    request.roles = request.statistics = true;
  check_request(request);
  return request;
}

bool is_too_long_for_a_file(const std::filesystem::path& name) {
  return std::any_of(name.begin(), name.end(),
                     [](const auto& part) { return part.native().size() > NAME_MAX; });
}

std::vector<study::LoadedModel> open_models(const std::vector<std::string>& names,
                                            const study::Context& context) {
  if (names.size() > 2)
    throw UsageError(
        fmt::format("'{}' is a third model; at most two are compared. Prompts are given "
                    "with --prompt TEXT",
                    printable(names[2])));
  // The second argument may have been meant as text.
  const auto of_hub = hub::hub_name_if_any(names.back());
  if (names.size() == 2 && !(of_hub && of_hub->has_organisation()) &&
      (is_too_long_for_a_file(names[1]) ||
       (!is_there(names[1]) && !study::find_named_model(names[1]))))
    fail("model '{}': no such folder or name; prompts are given with --prompt TEXT",
         printable(names[1]));
  return study::load_models(names, context);
}

void run_command(const AttentionCommand& command, const Session& session) {
  const study::AttentionRequest request = request_of(command);
  catch_interrupts();
  const study::Context context = session.context();
  const std::vector<study::LoadedModel> models = open_models(command.models, context);
  const study::AttentionResult result = study::run(request, models, context);
  if (session.json())
    session.print_json(to_json(result));
  else
    session.print(text_of(result, command.show.has("heads")));
}

}  // namespace

void add_attention(Program& program) {
  const auto command = std::make_shared<AttentionCommand>();
  study::AttentionRequest& request = command->request;
  CLI::App& app = program.add(
      {"attention",
       "Attention maps on prompts: files, head roles, statistics, head pairs.",
       {"filigree attention gpt2 --prompt \"The cat sat on the mat\"",
        "filigree attention dense sparse --data shards --samples 50 --out stats.csv",
        "filigree attention dense sparse --prompt \"a b a b\" --show roles --out maps.pdf",
        "filigree attention gpt2 --prompts-file texts.txt --heads L6H* --out maps.npz",
        "filigree attention gpt2 --prompt \"a b a b\" --heads L9H1,L3H0 --out two.pdf",
        "filigree attention sparse --prompt \"a b a b\" --what gate --out gates.json",
        "filigree attention gpt2 --prompt \"a b a b\" --ablate L4H11 --heads L5"},
       Computes::kOnDevice,
       true},
      [command](Session& session) { run_command(*command, session); });
  app.add_option("MODEL", command->models, "model folder or name, or two to compare")->required();
  add_prompt_options(app, command->prompts);
  app.add_option("--heads", request.heads, "L5H1,L6H*,3.0-3.5,L2H1-L2H4 or * for all")
      ->check(head_list())
      ->type_name("HEADS")
      ->capture_default_str();
  command->show.add(
      app, {"roles", "statistics", "heads", "pairs"},
      "what is printed: what each head does; statistics of models and layers, of two models "
      "with intervals and p-values of the change; those of every head; correlations of head "
      "pairs (default roles and statistics where no file is written)");
  app.add_option("--out", command->out,
                 "file of the maps (.npz, .safetensors, .json), of a figure of them (.svg, .pdf, "
                 ".png) or of the statistics, every head's too (.csv); may be given several times")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("FILE");
  add_choice(app, "--what", request.kind, "maps to write");
  add_intervention_options(app, request.interventions);
  program.add_knobs(app, knobs_of(request));
}

}  // namespace filigree::cli
