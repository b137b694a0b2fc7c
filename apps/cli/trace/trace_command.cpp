// filigree trace: what a prompt's prediction comes from, through features and heads.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "apps/cli/circuits/task_options.h"
#include "apps/cli/commands.h"
#include "apps/cli/program/choices.h"
#include "apps/cli/program/figure_options.h"
#include "apps/cli/program/input.h"
#include "apps/cli/program/program.h"
#include "apps/cli/program/prompt_option.h"
#include "filigree/feature_study.h"
#include "filigree/features.h"
#include "filigree/names.h"
#include "filigree/study.h"
#include "filigree/trace_study.h"

namespace filigree::cli {
namespace {

struct TraceCommand {
  std::string model, twin;
  std::vector<std::string> features, indices;  // of the model, and then of its twin
  study::TraceRequest request;
  std::string prompts_file;
  study::TaskSelection task;
  study::TraceFiles out;
};

void check_out(const TraceCommand& command) {
  study::check_files(command.out);
  const bool graph = std::any_of(command.out.files.begin(), command.out.files.end(),
                                 [](const std::string& file) { return file.ends_with(".json"); });
  if (!graph && !command.indices.empty())
    throw UsageError("an index is for the features of a graph: --index goes with --out FILE.json");
}

// The dense one stands first, as everywhere.
std::vector<std::string> models_of(const TraceCommand& command) {
  if (command.twin.empty()) return {command.model};
  return {command.twin, command.model};
}

std::vector<study::TraceFeatures> features_of(const TraceCommand& command) {
  const auto given = [](const std::vector<std::string>& names, std::size_t index) {
    return index < names.size() ? names[index] : std::string();
  };
  const study::TraceFeatures own = {given(command.features, 0), given(command.indices, 0)};
  if (command.twin.empty()) return {own};
  // Names the option where there are none.
  return {{study::features_of_model(given(command.features, 1), command.twin).string(),
           given(command.indices, 1)},
          own};
}

void run_on_task(const TraceCommand& command, const study::TraceRequest& request,
                 const Session& session) {
  if (!request.target.empty() || !request.feature.empty() || !command.out.files.empty())
    throw UsageError(
        "--task explains the task's answers and writes no files: it goes without "
        "--target, --feature and --out");
  const study::Context context = session.context();
  const study::TaskTraceResult result =
      study::run(study::TaskTraceRequest{command.task, request},
                 study::load_models(models_of(command), context), context);
  if (session.json()) return session.print_json(to_json(result));
  session.print(text_of(result));
}

void run_on_prompt(const TraceCommand& command, const study::TraceRequest& request,
                   const Session& session) {
  const study::Context context = session.context();
  const std::vector<study::LoadedModel> models = study::load_models(models_of(command), context);
  const study::TraceResult result = study::run(request, models, context);
  std::vector<std::string> written;
  if (session.writes()) written = write_files(result, command.out, context);
  if (!session.json()) return session.print(text_of(result));
  study::Json json = to_json(result);
  json["out"] = written.empty() ? study::Json() : study::Json(written);
  session.print_json(json);
}

// "graph-007.json" of the seventh prompt.
study::TraceFiles numbered(study::TraceFiles files, std::size_t number) {
  for (std::string& file : files.files) {
    const std::filesystem::path path = file;
    file = (path.parent_path() /
            fmt::format("{}-{:03}{}", path.stem().string(), number, path.extension().string()))
               .string();
  }
  return files;
}

void run_on_prompts(const TraceCommand& command, study::TraceRequest request,
                    const Session& session) {
  const std::vector<study::TextPrompt> prompts = read_prompts_file(command.prompts_file);
  const study::Context context = session.context();
  const std::vector<study::LoadedModel> models = study::load_models(models_of(command), context);
  study::Json list = study::Json::array();
  for (std::size_t p = 0; p < prompts.size(); ++p) {
    context.throw_if_stopped();
    request.prompt = prompts[p].text;
    study::TraceResult result;
    try {
      result = study::run(request, models, context);
    } catch (const study::RequestError&) {
      throw;
    } catch (const LackOfMemory&) {
      throw;
    } catch (const Error& error) {
      fail("{}: {}", prompts[p].name, error.what());
    }
    std::vector<std::string> written;
    if (session.writes()) written = write_files(result, numbered(command.out, p + 1), context);
    if (!session.json()) {
      session.print(
          fmt::format("{}{}\n\n{}", p == 0 ? "" : "\n", prompts[p].name, text_of(result)));
      continue;
    }
    study::Json json = to_json(result);
    json["out"] = written.empty() ? study::Json() : study::Json(written);
    list.push_back(std::move(json));
  }
  if (session.json()) session.print_json({{"prompts", list}});
}

void run_trace_command(const TraceCommand& command, const Session& session) {
  const std::size_t models = command.twin.empty() ? 1 : 2;
  if (command.features.size() > models || command.indices.size() > models)
    throw UsageError(
        "--features and --index take one value for MODEL and, with --twin, one for the twin");
  if ((command.request.prompt.empty() ? 0 : 1) + (command.task.name.empty() ? 0 : 1) +
          (command.prompts_file.empty() ? 0 : 1) !=
      1)
    throw UsageError("one of --prompt, --prompts-file and --task says what is read");
  if (command.request.chat && !command.task.name.empty())
    throw UsageError("--chat goes with --prompt and --prompts-file");
  check_out(command);
  study::TraceRequest request = command.request;
  request.features = features_of(command);
  request.end_of_text = command.task.end_of_text;
  if (!command.prompts_file.empty()) return run_on_prompts(command, request, session);
  if (command.task.name.empty()) return run_on_prompt(command, request, session);
  run_on_task(command, request, session);
}

}  // namespace

void add_trace(Program& program) {
  const auto command = std::make_shared<TraceCommand>();
  CLI::App& app = program.add(
      {"trace",
       "What a prediction comes from: features, and the heads between them.",
       {"filigree trace sparse-28m --prompt \"When John and Mary met, John gave it to\"",
        "filigree trace gpt2 --features clt --prompt \"Paris is in\" --target \" France\"",
        "filigree trace gpt2 --index clt.index --prompt \"Paris is in\" --out graph.json",
        "filigree trace sparse --twin dense --prompt \"one two one\" --out heads.svg",
        "filigree trace gpt2 --prompt \"Paris is in\" --draw graph --out graph.pdf",
        "filigree trace gpt2 --features clt --task ioi --prompts 16 --set validate=20"},
       Computes::kOnDevice,
       true},
      [command](Session& session) { run_trace_command(*command, session); });
  study::TraceRequest& request = command->request;
  app.add_option("MODEL", command->model, "model folder or name")->required();
  app.add_option("--features", command->features,
                 "transcoder of the model, and then of its twin: folder, file or name (default "
                 "MODEL-features beside each model's folder, as bundled models have it)")
      ->expected(1, 2)
      ->type_name("DIR");
  add_prompt_option(app, request.prompt, "text to read");
  add_prompts_file_option(app, command->prompts_file);
  add_chat_option(app, request.chat);
  app.add_option("--task", command->task.name,
                 "instead of a prompt: name of a task (see task list) or JSONL file")
      ->type_name("TASK");
  add_task_options(app, command->task, false);
  app.add_option("--target", request.target,
                 "token to explain, with the space before it; of several the first (default the "
                 "likeliest next tokens)")
      ->type_name("TEXT");
  app.add_option("--against", request.against,
                 "explain the difference between the logits of --target and this token")
      ->type_name("TEXT");
  app.add_option("--feature", request.feature, "explain a feature instead of a token: L3F17@5")
      ->type_name("TEXT");
  app.add_option("--twin", command->twin, "model to trace beside it, dense beside sparse")
      ->type_name("MODEL");
  app.add_option("--index", command->indices,
                 "what features index wrote, for the model and then its twin: a graph (--out "
                 "FILE.json) then says what each of its features is")
      ->expected(1, 2)
      ->type_name("FILE");
  app.add_option("--out", command->out.files,
                 "file of the graph (.json for circuit-tracer and Neuronpedia, .dot, .npz) or of a "
                 "figure (.svg, .pdf, .png); may be given several times")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("FILE");
  add_choice(app, "--draw", command->out.drawing, "figure that is drawn");
  Knobs knobs = knobs_of(request);
  knobs.add(knobs_of(command->task));
  knobs.add(knobs_of(command->out.style));
  program.add_knobs(app, std::move(knobs));
}

}  // namespace filigree::cli
