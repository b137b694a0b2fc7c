// filigree demo: the whole story on the two bundled models, in about a minute on two cores. Both
// are evaluated on held-out text, compared on a handful of prompts and searched for the circuits of
// a few tasks; figures, data and one offline page go into a folder, a summary to the terminal.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "apps/cli/circuits/circuit_text.h"
#include "apps/cli/commands.h"
#include "apps/cli/comparison/comparison.h"
#include "apps/cli/program/figure_options.h"
#include "apps/cli/program/input.h"
#include "apps/cli/program/program.h"
#include "apps/cli/program/stopwatch.h"
#include "apps/cli/program/table.h"
#include "apps/cli/training/evaluation_report.h"
#include "filigree/base/error.h"
#include "filigree/base/strings.h"
#include "filigree/text/corpus/corpus.h"

namespace filigree::cli {
namespace {

struct DemoCommand {
  DemoCommand() {
    compare.dense = "dense-12x12";
    compare.sparse = "sparse-12x12";
    compare.out = "demo";
  }

  CompareOptions compare;
  std::string text;
  std::vector<std::string> tasks = {"ioi", "greater-than", "copy", "antonym"};
  // Of a task. The time is nearly proportional; of 16 answers between two, 14 right ones are better
  // than chance.
  std::int64_t prompts = 16;
  std::int64_t tokens = 4096;
  std::int64_t length = 256;  // of the windows, at most
};

// A text that a bundled model brings along to be measured on.
constexpr const char* kHeldOutFile = "held-out.txt";

struct NamedEvaluationText {
  std::string name;  // "prose", "tasks"
  study::EvaluationText text;
};

// Prose, the user's or the model's own, where there is some; and sentences of the tasks, in
// combinations that training never saw.
std::vector<NamedEvaluationText> held_out_texts(const DemoCommand& command,
                                                const Session& session) {
  std::vector<NamedEvaluationText> texts;
  const std::string own = (model_folder(command.compare.dense) / kHeldOutFile).string();
  std::error_code ignored;
  if (!command.text.empty())
    texts.push_back({"prose", {read_text(command.text), source_name(command.text)}});
  else if (std::filesystem::is_regular_file(own, ignored))
    texts.push_back({"prose", {read_text(own), source_name(own)}});
  if (!texts.empty())
    require(!texts[0].text.text.empty(), "{} is empty; there is nothing to predict",
            texts[0].text.source);
  const Corpus corpus({.seed = session.options().seed, .split = CorpusSplit::kHeldOut});
  std::string tasks;
  constexpr std::uint64_t kBytesPerToken = 8;  // more than there are: windows stop at the tokens
  corpus.write(0, static_cast<std::uint64_t>(command.tokens) * kBytesPerToken,
               [&](std::string_view block) { tasks += block; });
  texts.push_back({"tasks", {tasks, "the text of the tasks"}});
  return texts;
}

struct TextLosses {
  std::string text;
  std::vector<EvaluatedModel> models;
};

std::vector<TextLosses> evaluate_texts(const DemoCommand& command,
                                       const std::vector<std::string>& labels,
                                       const Session& session) {
  std::vector<TextLosses> losses;
  for (const NamedEvaluationText& text : held_out_texts(command, session)) {
    losses.push_back({text.name, {}});
    const std::string names[] = {command.compare.dense, command.compare.sparse};
    for (std::size_t m = 0; m < 2; ++m) {
      const ModelConfig config = read_model_config(model_folder(names[m]));
      const WindowOptions windows = {.length = std::min(command.length, config.context),
                                     .max_tokens = command.tokens};
      const study::LoadedModel model(names[m], labels[m], {.placement = session.placement()});
      losses.back().models.push_back(
          study::evaluate_text(model, text.text, windows, session.context(),
                               fmt::format("{} {}", labels[m], text.name)));
    }
  }
  return losses;
}

// A task that cannot be asked of these models, and why.
struct LeftOut {
  std::string task, why;
};

// Single tokens as answers where the tokenizer has them, else the first of several. A tokenizer may
// cut a task so that it cannot be asked at all; the others are still worth showing.
std::vector<LeftOut> choose_tasks(DemoCommand& command, const Session& session) {
  std::vector<LeftOut> left_out;
  const std::filesystem::path folder = model_folder(command.compare.dense);
  const Tokenizer tokenizer = open_tokenizer(folder.string());
  const ModelConfig config = read_model_config(folder);
  for (const std::string& name : command.tasks) {
    study::TaskSelection selection;
    selection.name = name;
    selection.prompts = command.prompts;
    study::find_task(name);  // throws for a task that there is not
    std::optional<std::string> why;
    for (const bool first_token : {false, true}) {
      selection.first_token = first_token;
      try {
        study::load_task(selection, tokenizer, &config, session.options().seed);
        why.reset();
        break;
      } catch (const Error& error) {
        if (!why) why = error.what();
      }
    }
    if (why)
      left_out.push_back({name, *why});
    else
      command.compare.tasks.push_back(selection);
  }
  return left_out;
}

std::string loss_text(const EvaluatedModel& model) {
  return fmt::format("{:.3f}", model.evaluation.loss());
}

std::string models_table(const std::vector<TextLosses>& losses) {
  std::vector<Table::Column> columns = {{"model"}};
  for (const TextLosses& text : losses) {
    columns.push_back({text.text + ": loss", Align::kRight});
    columns.push_back({"active edges", Align::kRight});
    columns.push_back({"keys per query", Align::kRight});
  }
  Table table(columns);
  for (std::size_t m = 0; m < 2; ++m) {
    std::vector<std::string> row = {printable(losses[0].models[m].label)};
    for (const TextLosses& text : losses) {
      const Connectivity open = text.models[m].evaluation.connectivity();
      row.push_back(loss_text(text.models[m]));
      row.push_back(percent(open.active_edges));
      row.push_back(fmt::format("{:.3g}", open.keys_per_query));
    }
    table.add(row);
  }
  return table.text();
}

std::string tasks_table(const std::vector<study::TaskCircuits>& tasks, double level) {
  Table table({{"task"},
               {"model"},
               {"accuracy", Align::kRight},
               {fmt::format("for {:g} %: heads", 100 * level), Align::kRight},
               {"ratio", Align::kRight},
               {"edges", Align::kRight},
               {"ratio", Align::kRight},
               {"attention edges", Align::kRight},
               {"ratio", Align::kRight}});
  for (const study::TaskCircuits& task : tasks) {
    const study::CircuitsOfKind &heads = *task.find(study::Parts::kHeads),
                                &edges = *task.find(study::Parts::kEdges),
                                &cells = *task.find(study::Parts::kAttentionEdges);
    for (std::size_t m = 0; m < heads.size(); ++m)
      table.add({m == 0 ? printable(task_title(task.task())) : "", printable(heads[m].label),
                 fmt::format("{:.0f} %", 100 * heads[m].check.clean_accuracy), size_text(heads[m]),
                 ratio_text(heads[0], heads[m]), size_text(edges[m]),
                 ratio_text(edges[0], edges[m]), size_text(cells[m]),
                 ratio_text(cells[0], cells[m])});
  }
  return table.text();
}

Comparison::More more_of(const std::vector<TextLosses>& losses,
                         const std::vector<LeftOut>& left_out) {
  Comparison::More more;
  more.facts.resize(2);
  Json texts = Json::array();
  for (const TextLosses& text : losses) {
    texts.push_back({{"text", text.text}, {"models", study::to_json(text.models)}});
    // The page has edges and keys of the prompts too, which are shorter.
    for (std::size_t m = 0; m < 2; ++m) {
      const Connectivity open = text.models[m].evaluation.connectivity();
      more.facts[m].emplace_back(
          "held-out " + text.text,
          fmt::format("loss {}, {} of the edges active, {:.3g} keys per query",
                      loss_text(text.models[m]), percent(open.active_edges), open.keys_per_query));
    }
  }
  more.summary["held_out"] = texts;
  more.summary["tasks_left_out"] = Json::array();
  for (const LeftOut& task : left_out)
    more.summary["tasks_left_out"].push_back({{"task", task.task}, {"why", task.why}});
  return more;
}

void run_demo(DemoCommand command, const Session& session) {
  const Stopwatch watch;
  const std::vector<LeftOut> left_out = choose_tasks(command, session);
  Comparison comparison(command.compare, session);
  catch_interrupts();
  const std::vector<TextLosses> losses = evaluate_texts(command, comparison.labels(), session);
  comparison.write(more_of(losses, left_out));
  if (session.json()) {
    Json json = comparison.summary();
    json["out"] = command.compare.out;
    json["report"] = comparison.page().string();
    json["files"] = comparison.files();
    json["seconds"] = watch.seconds();
    session.print_json(json);
    return;
  }
  std::string text = models_table(losses) + "\n";
  if (!comparison.compared().tasks.empty())
    text += tasks_table(comparison.compared().tasks, command.compare.effort.level) + "\n";
  for (const LeftOut& task : left_out)
    text += fmt::format("{} left out: {}\n", printable(task.task), task.why);
  session.print(text + fmt::format("{} files in {}; the report is {}\n", comparison.files().size(),
                                   format_seconds(watch.seconds()), comparison.page().string()));
}

}  // namespace

void add_demo(Program& program) {
  const auto command = std::make_shared<DemoCommand>();
  CLI::App& app = program.add(
      {"demo",
       "Compare the bundled dense and sparse model: losses, maps, circuits, one report.",
       {"filigree demo", "filigree demo --out comparison --text my-prose.txt",
        "filigree demo --dense mine --sparse mine-sparse --task ioi,my-task.jsonl"},
       Computes::kOnDevice},
      [command](Session& session) { run_demo(*command, session); });
  CompareOptions& compare = command->compare;
  app.add_option("--out", compare.out, "folder for the report, figures, tables and data")
      ->type_name("DIR")
      ->capture_default_str();
  app.add_option("--dense", compare.dense, "model folder or name")
      ->type_name("MODEL")
      ->capture_default_str();
  app.add_option("--sparse", compare.sparse, "model folder or name, of the same shape")
      ->type_name("MODEL")
      ->capture_default_str();
  app.add_option("--text", command->text,
                 "UTF-8 text to measure the loss of prose on; - for stdin (default the one beside "
                 "the dense model)")
      ->type_name("FILE");
  app.add_option("--tokens", command->tokens, "tokens of each held-out text")
      ->check(whole_number(1, 1 << 30))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--task", command->tasks, "tasks or JSONL files of tasks, with commas")
      ->delimiter(',')
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("TASK")
      ->default_str("ioi,greater-than,copy,antonym");
  app.add_option("--task-prompts", command->prompts, "prompts of each task")
      ->check(whole_number(1, 10000))
      ->type_name("N")
      ->capture_default_str();
  add_figure_formats(app, compare.formats);
  add_figure_options(app, compare.style);
}

}  // namespace filigree::cli
