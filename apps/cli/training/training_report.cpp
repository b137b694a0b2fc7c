#include "apps/cli/training/training_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "apps/cli/models/memory_estimate.h"
#include "apps/cli/program/program.h"
#include "apps/cli/program/table.h"
#include "filigree/base/atomic_file.h"
#include "filigree/base/strings.h"

namespace filigree::cli {
namespace {

std::string count_text(std::int64_t count) {
  return with_thousands(static_cast<std::uint64_t>(count));
}

}  // namespace

void report_dry_run(const ModelSize& model, const std::optional<ModelSize>& teacher,
                    std::int64_t length, const TrainingOptions& options, const TrainingData& data,
                    const Session& session) {
  // Of each process, which has its part of a batch.
  const std::int64_t rows = std::max<std::int64_t>(1, options.batch / session.ranks().size());
  const auto& [config, parameters] = model;
  const MemoryEstimate memory = estimate_memory(config, parameters, rows, length);
  std::uint64_t teacher_bytes = 0;
  if (teacher) {
    const MemoryEstimate more = estimate_memory(teacher->config, teacher->parameters, rows, length);
    teacher_bytes = more.weights + more.forward;
  }
  const std::uint64_t bytes = memory.training_state + memory.training_activations + teacher_bytes;
  const std::int64_t step_tokens = options.batch * options.accumulate * length;
  const std::int64_t tokens = options.steps * step_tokens;
  const double epochs = static_cast<double>(tokens) / static_cast<double>(data.train.tokens());
  const std::uint64_t held_out = data.held_out ? data.held_out->tokens() : 0;
  if (session.json()) {
    session.print_json({{"dry_run", true},
                        {"out", options.out},
                        {"parameters", parameters},
                        {"steps", options.steps},
                        {"tokens_a_step", step_tokens},
                        {"tokens", tokens},
                        {"epochs", epochs},
                        {"data", {{"train", data.train.tokens()}, {"held_out", held_out}}},
                        {"memory_bytes",
                         {{"weights_gradients_moments", memory.training_state},
                          {"activations", memory.training_activations},
                          {"teacher", teacher_bytes},
                          {"total", bytes}}}});
    return;
  }
  Table facts({{""}, {""}});
  facts.add({"model", fmt::format("{} layers, {} heads, width {}, context {}, {} tokens",
                                  config.layers, config.heads, config.width, config.context,
                                  count_text(config.vocabulary))});
  facts.add({"parameters", count_text(parameters)});
  facts.add({"data", fmt::format("{} tokens, {} held out", with_thousands(data.train.tokens()),
                                 with_thousands(held_out))});
  facts.add({"training", fmt::format("{} steps of {} tokens = {} tokens, {:.3g} epochs",
                                     count_text(options.steps), count_text(step_tokens),
                                     count_text(tokens), epochs)});
  facts.add({"memory", fmt::format("about {}: {} weights, gradients and moments, {} activations{}",
                                   human_bytes(bytes), human_bytes(memory.training_state),
                                   human_bytes(memory.training_activations),
                                   teacher ? ", " + human_bytes(teacher_bytes) + " teacher" : "")});
  facts.add({"out", printable(options.out) + " (nothing was written)"});
  session.print(facts.text());
}

void report_outcome(const TrainingOutcome& outcome, const TrainingOptions& options,
                    const std::vector<EvaluatedModel>& models, Session& session) {
  const TrainerResult& result = outcome.result;
  Json last = Json::object();
  for (const auto& [name, value] : result.last) last[name] = value;
  Json json = {{"out", options.out},
               {"end", name_of(result.end)},
               {"steps", result.steps},
               {"of", options.steps},
               {"resumed_from", result.resumed_from},
               {"tokens", outcome.tokens},
               {"seconds", outcome.seconds},
               {"last_step", last},
               {"held_out", study::to_json(models)}};
  if (!result.reason.empty()) json["reason"] = result.reason;
  const bool stopped = result.end == TrainerResult::End::kStoppedEarly;
  if (stopped) session.set_exit_code(kOutOfReach);
  if (!session.writes()) return;
  if (!outcome.interrupted())
    write_file_atomically(std::filesystem::path(options.out) / "result.json", json.dump(2) + "\n");
  if (session.json()) {
    session.print_json(json);
  } else if (!outcome.interrupted()) {
    const std::string table = models.empty() ? "" : evaluation_table(models) + "\n";
    session.print(fmt::format("{}{} after {} steps; the model is in {}\n", table,
                              stopped ? "stopped early" : "finished", count_text(result.steps),
                              printable(options.out)));
  }
  // Not a note: --quiet leaves out what is not needed, and an unmet aim needs its reason.
  if (stopped) std::cerr << "filigree: " << result.reason << '\n' << std::flush;
}

}  // namespace filigree::cli
