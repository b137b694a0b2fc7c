// filigree corpus: writes the synthetic task corpus.
#include "filigree/text/corpus/corpus.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <charconv>
#include <iostream>
#include <memory>
#include <optional>

#include "apps/cli/commands.h"
#include "apps/cli/program/program.h"
#include "apps/cli/program/stopwatch.h"
#include "apps/cli/program/table.h"
#include "filigree/base/atomic_file.h"
#include "filigree/base/error.h"
#include "filigree/base/strings.h"
#include "filigree/text/corpus/tasks.h"

namespace filigree::cli {
namespace {

struct CorpusCommand {
  std::string out;
  std::string size;
  std::int64_t documents = 0;
  std::vector<std::string> tasks;
  std::string split = "train";
  bool list = false;
};

// "10MB", "1.5 GB", "300": decimal units, as sizes are printed.
std::uint64_t parse_size(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, failure] = std::from_chars(text.data(), end, value);
  std::string unit(stopped, end);
  while (unit.starts_with(' ')) unit.erase(0, 1);
  double factor = 0;
  for (const auto& [name, bytes] :
       {std::pair{"", 1.0}, std::pair{"B", 1.0}, std::pair{"kB", 1e3}, std::pair{"KB", 1e3},
        std::pair{"MB", 1e6}, std::pair{"GB", 1e9}, std::pair{"TB", 1e12}})
    if (unit == name) factor = bytes;
  const double size = value * factor;
  if (failure != std::errc() || !(size >= 1) || size > 1e15)
    throw UsageError(fmt::format("--size: '{}' is not a size; write it as 500kB, 10MB or 1.5GB",
                                 printable(text)));
  return static_cast<std::uint64_t>(size);
}

// "name" or "name=weight".
std::vector<TaskShare> parse_tasks(const std::vector<std::string>& items) {
  std::vector<TaskShare> shares;
  for (const std::string& item : items) {
    const std::size_t equals = item.find('=');
    TaskShare share;
    try {
      share.task = &corpus_task(item.substr(0, equals));
    } catch (const Error& error) {
      throw UsageError(error.what());
    }
    if (equals != std::string::npos) {
      const char* end = item.data() + item.size();
      const auto [stopped, failure] = std::from_chars(item.data() + equals + 1, end, share.weight);
      if (failure != std::errc() || stopped != end || !(share.weight >= 0) || share.weight > 1e9)
        throw UsageError(
            fmt::format("--tasks: the weight in '{}' is not a number from 0 on", printable(item)));
    }
    for (const TaskShare& other : shares)
      if (other.task == share.task)
        throw UsageError(fmt::format("--tasks: '{}' is given twice", share.task->name));
    shares.push_back(share);
  }
  return shares;
}

void list_tasks(const Session& session) {
  Random random(session.options().seed);
  Json list = Json::array();
  std::string text;
  for (const CorpusTask& task : corpus_tasks()) {
    const TaskExample example = make_example(task, random, CorpusSplit::kTrain);
    list.push_back({{"name", task.name},
                    {"description", task.description},
                    {"example",
                     {{"prompt", example.prompt},
                      {"answer", example.answer},
                      {"text", example.text},
                      {"wrong", example.wrong},
                      {"also_right", example.also_right}}}});
    std::string shown = example.text;
    for (std::size_t at = 0; (at = shown.find('\n', at)) != std::string::npos; at += 5)
      shown.replace(at, 1, "\n    ");
    text += fmt::format("{}: {}\n    {}\n", task.name, task.description, shown);
  }
  if (session.json())
    session.print_json({{"tasks", list}});
  else
    session.print(text);
}

void run_corpus(const CorpusCommand& command, const Session& session) {
  if (command.list) return list_tasks(session);
  if (command.out.empty()) throw UsageError("--out FILE is required; - is stdout");
  if (command.size.empty() == (command.documents == 0))
    throw UsageError("give either --size or --documents");
  const bool to_stdout = command.out == "-";
  if (to_stdout && session.json()) throw UsageError("--json has no place beside --out -");
  const std::uint64_t size = command.size.empty() ? 0 : parse_size(command.size);
  const auto documents = static_cast<std::uint64_t>(command.documents);
  const Corpus corpus(
      {.tasks = parse_tasks(command.tasks),
       .seed = session.options().seed,
       .split = command.split == "train" ? CorpusSplit::kTrain : CorpusSplit::kHeldOut});
  const Stopwatch watch;
  std::optional<AtomicFile> file;
  if (!to_stdout) file.emplace(command.out);
  const std::uint64_t unit = size >= 10000000 ? 1000000 : 1000;
  Progress progress(std::cerr, session.progress("corpus", unit == 1000 ? "kB" : "MB",
                                                static_cast<std::int64_t>(size / unit)));
  std::uint64_t bytes = 0;
  const Corpus::Written written = corpus.write(documents, size, [&](std::string_view text) {
    throw_if_interrupted();
    if (file)
      file->write(text);
    else
      session.print(text);
    bytes += text.size();
    progress.update(static_cast<std::int64_t>(bytes / unit));
  });
  if (file) file->commit();
  progress.finish();
  if (to_stdout) return;
  const double seconds = watch.seconds();
  const double speed = static_cast<double>(written.bytes) / 1e6 / seconds;
  if (session.json())
    session.print_json({{"out", command.out},
                        {"split", command.split},
                        {"documents", written.documents},
                        {"bytes", written.bytes},
                        {"seconds", seconds},
                        {"megabytes_per_second", speed}});
  else
    session.print(fmt::format("{}: {} documents, {} in {}, {:.1f} MB/s\n", printable(command.out),
                              with_thousands(written.documents), human_bytes(written.bytes),
                              format_seconds(seconds), speed));
}

}  // namespace

void add_corpus(Program& program) {
  const auto command = std::make_shared<CorpusCommand>();
  CLI::App& app =
      program.add({"corpus",
                   "Write the synthetic task corpus.",
                   {"filigree corpus --list", "filigree corpus --size 10MB --out tasks.txt",
                    "filigree corpus --documents 500 --split heldout --out heldout.txt",
                    "filigree corpus --documents 3 --tasks addition=3,capital --seed 7 --out -"}},
                  [=](Session& session) { run_corpus(*command, session); });
  app.add_option("--out", command->out, "file to write; - is stdout")->type_name("FILE");
  app.add_option("--size", command->size, "stop at so many bytes: 500kB, 10MB, 1.5GB")
      ->type_name("SIZE");
  app.add_option("--documents", command->documents, "stop at so many documents")
      ->check(whole_number(1, INT64_MAX))
      ->type_name("N");
  app.add_option("--tasks", command->tasks,
                 "only these tasks, each with its weight after = if it is not 1")
      ->delimiter(',')
      ->type_name("NAME[=W]");
  app.add_option("--split", command->split,
                 "train, or heldout with combinations that train never shows")
      ->check([](const std::string& name) {
        return name == "train" || name == "heldout"
                   ? std::string()
                   : fmt::format("'{}' is neither train nor heldout", printable(name));
      })
      ->type_name("NAME")
      ->capture_default_str();
  app.add_flag("--list", command->list, "show the tasks with an example each");
}

}  // namespace filigree::cli
