// filigree generate: continue a prompt.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>

#include "apps/cli/commands.h"
#include "apps/cli/models/generation.h"
#include "apps/cli/program/input.h"
#include "apps/cli/program/program.h"
#include "apps/cli/program/table.h"

namespace filigree::cli {
namespace {

struct GenerateOptions {
  std::string model;
  std::string prompt;
  GenerationOptions generation;
  std::int64_t count = 1;
  bool no_cache = false;
  bool no_prompt = false;
};

std::string read_prompt(const std::string& prompt) {
  if (prompt != "-") return prompt;
  std::string text = read_text("-");
  if (text.ends_with('\n')) text.pop_back();  // echo's, not the user's
  return text;
}

Json as_json(const GenerateOptions& options, const std::string& prompt, std::size_t prompt_tokens,
             const std::vector<Continuation>& continuations) {
  const SamplingOptions& sampling = options.generation.sampling;
  Json list = Json::array();
  for (const Continuation& one : continuations)
    list.push_back({{"text", one.text},
                    {"ids", one.ids},
                    {"finish", name_of(one.finish)},
                    {"seconds", one.seconds}});
  return {{"model", options.model},
          {"prompt", prompt},
          {"prompt_tokens", prompt_tokens},
          {"temperature", sampling.temperature},
          {"top_k", sampling.top_k},
          {"top_p", sampling.top_p},
          {"max_tokens", options.generation.max_tokens},
          {"continuations", list}};
}

void add_notes(const Session& session, const std::vector<Continuation>& all, std::int64_t context) {
  std::size_t tokens = 0;
  double seconds = 0.0;
  bool reached_context = false;
  for (const Continuation& one : all) {
    tokens += one.ids.size();
    seconds += one.seconds;
    reached_context = reached_context || one.finish == Finish::kContext;
  }
  if (reached_context)
    session.note(fmt::format("stopped at the end of the model's context of {} tokens", context));
  session.note(fmt::format("{} tokens in {}, {:.1f} tokens/s", tokens, format_seconds(seconds),
                           static_cast<double>(tokens) / seconds));
}

void run_generate(GenerateOptions options, Session& session) {
  options.generation.use_cache = !options.no_cache;
  const std::string prompt = read_prompt(options.prompt);
  const Tokenizer tokenizer = open_tokenizer(model_folder(options.model).string());
  const std::vector<TokenId> ids = encode_text(tokenizer, prompt, "the prompt");
  const std::unique_ptr<Model> model =
      load_model(model_folder(options.model), {.placement = session.placement()});
  check_ids(ids, model->config().vocabulary, options.model);

  Generator generator(*model, tokenizer, ids, options.generation);
  std::vector<Continuation> continuations;
  for (std::int64_t i = 0; i < options.count; ++i) {
    if (!session.json()) {
      if (options.count > 1)
        session.print(fmt::format("{}[{}/{}]\n", i > 0 ? "\n" : "", i + 1, options.count));
      if (!options.no_prompt) session.print(prompt);
    }
    continuations.push_back(generator.run(session.options().seed, static_cast<std::uint64_t>(i),
                                          [&](std::string_view text) {
                                            if (!session.json()) session.print(text);
                                          }));
    if (!session.json()) session.print("\n");
    throw_if_interrupted();
  }
  if (session.json()) session.print_json(as_json(options, prompt, ids.size(), continuations));
  add_notes(session, continuations, model->config().context);
}

}  // namespace

void add_generate(Program& program) {
  const auto options = std::make_shared<GenerateOptions>();
  CLI::App& app =
      program.add({"generate",
                   "Continue a prompt, token by token.",
                   {"filigree generate gpt2 \"The capital of France is\" --temperature 0",
                    "filigree generate gpt2 \"Once upon a time\" --count 3 --top-p 0.9 --seed 1",
                    "echo \"Dear Sir,\" | filigree generate gpt2 - --stop \"\\n\" --json"},
                   Computes::kOnDevice},
                  [options](Session& session) { run_generate(*options, session); });
  app.add_option("MODEL", options->model, "model folder or name")->required();
  app.add_option("PROMPT", options->prompt, "text to continue; - reads it from stdin")->required();

  GenerationOptions& generation = options->generation;
  SamplingOptions& sampling = generation.sampling;
  sampling.top_k = 50;
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
  app.add_option("--count", options->count, "number of continuations")
      ->check(whole_number(1, 1 << 20))
      ->type_name("N")
      ->capture_default_str();
  app.add_flag("--no-prompt", options->no_prompt, "print only what is new");
  app.add_flag("--no-cache", options->no_cache,
               "compute every position again for every token (slow; for comparison)");
}

}  // namespace filigree::cli
