// filigree generate: continue a prompt.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <utility>

#include "apps/cli/commands.h"
#include "apps/cli/program/input.h"
#include "apps/cli/program/intervention_options.h"
#include "apps/cli/program/program.h"
#include "apps/cli/program/prompt_option.h"
#include "base/table.h"
#include "filigree/generation_study.h"
#include "filigree/lens_study.h"

namespace filigree::cli {
namespace {

struct GenerateOptions {
  std::string model;
  std::optional<std::string> prompt;
  bool chat = false;
  std::string text;  // file
  study::GenerationRequest request;
  bool echo = true;
};

std::string prompt_of(const GenerateOptions& options) {
  if (options.prompt.has_value() == !options.text.empty())
    throw UsageError("give either --prompt TEXT or --text FILE");
  if (options.prompt == "-") throw UsageError("'-' is no prompt; --text - reads it from stdin");
  if (options.prompt) return *options.prompt;
  std::string text = read_text(options.text);
  if (text.ends_with('\n')) text.pop_back();  // echo's, not the user's
  return text;
}

void run_generate(GenerateOptions options, Session& session) {
  study::GenerationRequest& request = options.request;
  request.prompt = prompt_of(options);
  request.chat = options.chat;
  const study::Context context = session.context();
  const study::LoadedModel model = std::move(study::load_models({options.model}, context).front());
  study::GenerationReader reader;
  if (!session.json()) {
    reader.begin = [&](std::int64_t i) {
      if (request.count > 1)
        session.print(fmt::format("{}[{}/{}]\n", i > 0 ? "\n" : "", i + 1, request.count));
      if (options.echo) session.print_exactly(request.prompt);
    };
    reader.text = [&](std::string_view text) { session.print_exactly(text); };
    reader.end = [&] { session.print("\n"); };
  }
  // With features steered, what comes without that first.
  std::optional<study::Generation> plain;
  if (!request.steering.empty()) {
    study::GenerationRequest without = request;
    without.steering.clear();
    if (!session.json()) session.print("plain\n");
    plain = study::run(without, model, context, reader);
    if (!session.json()) session.print("\n" + study::changed_text({}, request.steering));
  }
  const study::Generation result = study::run(request, model, context, reader);
  if (session.json()) {
    Json json = to_json(result);
    json["plain"] = plain ? to_json(*plain)["continuations"] : Json();
    session.print_json(json);
  }
  if (result.reached_context())
    session.note(
        fmt::format("stopped at the end of the model's context of {} tokens", result.context));
  session.note(fmt::format("{} tokens in {}, {:.1f} tokens/s", result.tokens(),
                           format_seconds(result.seconds()),
                           static_cast<double>(result.tokens()) / result.seconds()));
}

}  // namespace

void add_generate(Program& program) {
  const auto options = std::make_shared<GenerateOptions>();
  CLI::App& app = program.add(
      {"generate",
       "Continue a prompt, token by token.",
       {"filigree generate gpt2 --prompt \"The capital of France is\" --temperature 0",
        "filigree generate gpt2 --prompt \"Once upon a time\" --count 3 --top-p 0.9",
        "echo \"Dear Sir,\" | filigree generate gpt2 --text - --stop \"\\n\" --json",
        "filigree generate gpt2 --prompt \"Mary and John went home. Mary\" --ablate L9H*",
        "filigree generate gpt2 --prompt \"Once upon\" --steer L5F123=+8 --features clt"},
       Computes::kOnDevice,
       true},
      [options](Session& session) { run_generate(*options, session); });
  app.add_option("MODEL", options->model, "model folder or name")->required();
  add_prompt_option(app, options->prompt, "text to continue");
  add_chat_option(app, options->chat);
  app.add_option("--text", options->text, "read the prompt from a file; - is stdin")
      ->type_name("FILE");

  study::GenerationOptions& generation = options->request.options;
  study::SamplingOptions& sampling = generation.sampling;
  app.add_option("--max-tokens", generation.max_tokens, "stop after this many tokens")
      ->check(whole_number(1, 1 << 30))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--temperature", sampling.temperature,
                 "below 1 sharper, above 1 flatter, 0 takes the most probable token")
      ->check(number(0.0, 1000.0))
      ->type_name("X")
      ->capture_default_str();
  app.add_option("--top-k", sampling.top_k, "choose among the K most probable tokens; 0: all")
      ->check(whole_number(0, 1 << 30))
      ->type_name("K")
      ->capture_default_str();
  app.add_option("--top-p", sampling.top_p,
                 "choose among the fewest tokens whose probabilities sum to P")
      ->check(number_above(0.0, 1.0))
      ->type_name("P")
      ->capture_default_str();
  app.add_option("--stop", generation.stops,
                 "stop before this text; may be given several times; \\n is a line break")
      ->allow_extra_args(false)
      ->type_name("TEXT")
      ->expected(1)
      ->take_all()
      ->transform(CLI::Validator(
          [](std::string& text) {
            for (std::size_t at = 0; (at = text.find("\\n", at)) != std::string::npos; ++at)
              text.replace(at, 2, "\n");
            return std::string();
          },
          ""));
  app.add_option("--count", options->request.count, "number of continuations")
      ->check(whole_number(1, 1 << 20))
      ->type_name("N")
      ->capture_default_str();
  add_intervention_options(app, options->request.interventions);
  add_steering_options(app, options->request.steering, options->request.features);
  Knobs knobs = knobs_of(generation);
  knobs.section("Output");
  knobs.flag({.name = "echo", .what = "print the prompt before what continues it"}, options->echo);
  program.add_knobs(app, std::move(knobs));
}

}  // namespace filigree::cli
