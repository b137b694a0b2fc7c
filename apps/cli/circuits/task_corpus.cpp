#include "apps/cli/circuits/task_corpus.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <charconv>
#include <memory>

#include "apps/cli/program/choices.h"
#include "apps/cli/program/program.h"
#include "base/table.h"
#include "filigree/error.h"
#include "filigree/model_study.h"
#include "filigree/names.h"
#include "text/corpus/corpus_tasks.h"

namespace filigree::cli {
namespace {

// "name,name=weight".
std::vector<TaskShare> parse_tasks(const std::string& list) {
  std::vector<TaskShare> shares;
  for (const std::string& item : split_commas(list)) {
    const std::size_t equals = item.find('=');
    TaskShare share;
    share.task = &corpus_task(item.substr(0, equals));
    if (equals != std::string::npos) {
      const char* end = item.data() + item.size();
      const auto [stopped, failure] = std::from_chars(item.data() + equals + 1, end, share.weight);
      require(failure == std::errc() && stopped == end && share.weight >= 0 && share.weight <= 1e9,
              "the weight in '{}' is not a number from 0 on", printable(item));
    }
    for (const TaskShare& other : shares)
      require(other.task != share.task, "'{}' is given twice", share.task->name);
    shares.push_back(share);
  }
  double total = 0;
  for (const TaskShare& share : shares) total += share.weight;
  require(total > 0, "the weights in '{}' add up to 0", printable(list));
  return shares;
}

std::vector<std::string> task_names() {
  std::vector<std::string> names;
  for (const CorpusTask& task : corpus_tasks()) names.emplace_back(task.name);
  return names;
}

void list_corpus_tasks(const Session& session) {
  const std::vector<study::ShownTask> tasks = study::show_corpus_tasks(session.options().seed);
  if (session.json()) return session.print_json(to_json(tasks));
  std::string text;
  for (const auto& [task, example] : tasks) {
    std::string shown = example.text;
    for (std::size_t at = 0; (at = shown.find('\n', at)) != std::string::npos; at += 5)
      shown.replace(at, 1, "\n    ");
    text += fmt::format("{}: {}\n    {}\n", task->name, task->description, shown);
  }
  session.print(text);
}

}  // namespace

void run_corpus(const CorpusCommand& command, const Session& session) {
  if (command.out.empty() && command.size.empty() && command.documents == 0)
    return list_corpus_tasks(session);
  if (command.out.empty()) throw UsageError("--out FILE is required; - is stdout");
  if (command.size.empty() == (command.documents == 0))
    throw UsageError("give either --size or --documents");
  const bool to_stdout = command.out == "-";
  if (to_stdout && session.json()) throw UsageError("--json has no place beside --out -");
  study::CorpusRequest request;
  if (!command.mix.empty()) request.tasks = parse_tasks(command.mix);
  request.split = command.split;
  if (!command.size.empty()) request.bytes = parse_size(command.size);
  request.documents = static_cast<std::uint64_t>(command.documents);
  if (!to_stdout) request.out = command.out;
  const study::WrittenCorpus written = study::run(
      request, {}, session.context(), [&](std::string_view text) { session.print_exactly(text); });
  if (to_stdout) return;
  if (session.json())
    session.print_json(to_json(written));
  else
    session.print(fmt::format("{}: {} documents, {} in {}, {:.1f} MB/s\n", printable(command.out),
                              with_thousands(written.documents), human_bytes(written.bytes),
                              format_seconds(written.seconds), written.megabytes_per_second()));
}

void add_corpus_options(CLI::App& app, CorpusCommand& command) {
  app.add_option("--out", command.out, "file of the corpus; - is stdout")->type_name("FILE");
  app.add_option("--size", command.size, "corpus: stop at this many bytes, 500kB, 10MB or 1.5GB")
      ->check(checked_by("size", [](const std::string& text) { parse_size(text); }))
      ->type_name("SIZE");
  app.add_option("--documents", command.documents, "corpus: stop at this many documents")
      ->check(whole_number(1, INT64_MAX))
      ->type_name("N");
  app.add_option("--mix", command.mix,
                 fmt::format("corpus: only these tasks, each with its weight after = if it is not "
                             "1: one or several of {}",
                             fmt::join(task_names(), ", ")))
      ->check(checked_by("tasks", [](const std::string& text) { parse_tasks(text); }))
      ->type_name("NAME[=W],...");
}

}  // namespace filigree::cli
