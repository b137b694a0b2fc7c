#include "apps/cli/training/training_report.h"

#include <fmt/format.h>

#include <iostream>

#include "apps/cli/program/program.h"
#include "base/table.h"
#include "filigree/names.h"

namespace filigree::cli {
namespace {

std::string count_text(std::int64_t count) {
  return with_thousands(static_cast<std::uint64_t>(count));
}

std::string gates_text(const GateAdjustment& gates) {
  const GateAdjustment::Measured& before = gates.tried.front();
  const GateAdjustment::Measured& after = gates.chosen;
  return fmt::format(
      "gates set at {:+.2f} of the shift to sampled ones on held-out text: loss {:.4f} to {:.4f}, "
      "{} "
      "{:.4f}; active edges {} to {}\n",
      after.scale, before.loss, after.loss, gates.reached() ? "at most the" : "which is above the",
      gates.most_loss, percent(before.edges), percent(after.edges));
}

}  // namespace

void print_dry_run(const study::DryRun& run, const Session& session) {
  if (session.json()) {
    session.print_json(study::to_json(run));
    return;
  }
  const ModelConfig& config = run.config;
  Table facts({{""}, {""}});
  facts.add({"model", fmt::format("{} layers, {} heads, width {}, context {}, {} tokens",
                                  config.layers, config.heads, config.width, config.context,
                                  count_text(config.vocabulary))});
  facts.add({"parameters", count_text(run.parameters)});
  facts.add({"data", fmt::format("{} tokens, {} held out", with_thousands(run.train_tokens),
                                 with_thousands(run.held_out_tokens))});
  facts.add({"training",
             fmt::format("{} steps of {} tokens = {} tokens, {:.3g} epochs", count_text(run.steps),
                         count_text(run.tokens_a_step), count_text(run.tokens()), run.epochs())});
  facts.add({"memory", study::memory_text(run.memory)});
  if (run.memory_there > 0)
    facts.add(
        {"", fmt::format("{} are there{}", human_bytes(run.memory_there),
                         run.memory.total > run.memory_there ? ", so it cannot be run" : "")});
  facts.add({"out", printable(run.out) + " (nothing was written)"});
  session.print(facts.text());
}

void print_result(const study::TrainingResult& result, Session& session) {
  const bool stopped = result.end == RunEnd::kStoppedEarly;
  const bool holds = !result.verdict || result.verdict->holds();
  if (stopped || !holds) session.set_exit_code(kOutOfReach);
  if (result.interrupted()) session.note("the same command with --resume goes on");
  if (session.json()) {
    session.print_json(study::to_json(result));
  } else if (!result.interrupted()) {
    const std::string table =
        (result.held_out.empty() ? "" : study::evaluation_table(result.held_out) + "\n") +
        (result.gates ? gates_text(*result.gates) : "");
    session.print(fmt::format("{}{} after {} steps; the model is in {}\n", table,
                              stopped ? "stopped early" : "finished", count_text(result.steps),
                              printable(result.out)));
  }
  // Not a note: --quiet leaves out what is not needed, and an unmet aim needs its reason.
  if (!session.writes()) return;
  if (stopped) std::cerr << "filigree: " << terminal_text(result.reason) << '\n';
  if (!holds)
    for (const study::SparsifyVerdict::Found& found : result.verdict->found)
      std::cerr << "filigree: " << terminal_text(found.text) << '\n';
  std::cerr << std::flush;
}

}  // namespace filigree::cli
