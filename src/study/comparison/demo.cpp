#include <fmt/format.h>

#include "base/file_status.h"
#include "base/mapped_file.h"
#include "base/stopwatch.h"
#include "filigree/comparison_study.h"
#include "filigree/data.h"
#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree::study {
namespace {

EvaluationText text_of(const std::filesystem::path& file) {
  const std::shared_ptr<const MappedFile> mapped = MappedFile::open(file);
  const std::span<const std::byte> bytes = mapped->bytes();
  return {std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
          fmt::format("'{}'", printable(file.string()))};
}

// Prose, the user's or the model's own, where there is some; and sentences of the tasks, in
// combinations that training never saw.
std::vector<HeldOutText> held_out_texts(const DemoRequest& request, const LoadedModel& dense,
                                        const Context& context) {
  std::vector<HeldOutText> texts;
  const std::filesystem::path own = dense.folder() / kHeldOutFile;
  if (request.prose)
    texts.push_back({"prose", *request.prose});
  else if (is_file(own))
    texts.push_back({"prose", text_of(own)});
  if (!texts.empty())
    require(!texts[0].text.text.empty(), "{} is empty; there is nothing to predict",
            texts[0].text.source);
  const Corpus corpus({.seed = context.seed, .split = DataSplit::kHeldOut});
  std::string tasks;
  constexpr std::uint64_t kBytesPerToken = 8;  // more than there are: windows stop at the tokens
  corpus.write(0, static_cast<std::uint64_t>(request.tokens) * kBytesPerToken,
               [&](std::string_view block) { tasks += block; });
  texts.push_back({"tasks", {tasks, "the text of the tasks"}});
  return texts;
}

// Single tokens as answers where the tokenizer has them, else the first of several. A tokenizer may
// cut a task so that it cannot be asked at all; the others are still worth showing.
void choose_tasks(const DemoRequest& request, const LoadedModel& dense, const Context& context,
                  ComparisonRequest& comparison) {
  for (const std::string& name : request.tasks) {
    TaskSelection selection;
    selection.name = name;
    selection.prompts = request.task_prompts;
    std::optional<std::string> why;
    for (const bool first_token : {false, true}) {
      selection.first_token = first_token;
      try {
        load_task(selection, dense, context);
        why.reset();
        break;
      } catch (const Error& error) {
        if (!why) why = error.what();
      }
    }
    if (why)
      comparison.tasks_left_out.push_back({name, *why});
    else
      comparison.tasks.push_back(selection);
  }
}

}  // namespace

DemoResult run(const DemoRequest& request, Models models, const Context& context) {
  const Stopwatch watch;
  for (const std::string& task : request.tasks) find_task(task);  // throws for one there is not
  require(models.size() == 2, "the story is about a dense and a sparse model, and {} were given",
          models.size());
  ComparisonRequest comparison;
  comparison.folder = request.folder;
  comparison.formats = request.formats;
  comparison.maps = true;  // so that everything can be computed again
  comparison.style = request.style;
  comparison.made = request.made;
  comparison.texts = held_out_texts(request, models[0], context);
  comparison.windows = {.length = request.length, .max_tokens = request.tokens};
  choose_tasks(request, models[0], context, comparison);
  DemoResult result;
  result.level = comparison.effort.level;
  result.comparison = run(comparison, models, context);
  result.seconds = watch.seconds();
  return result;
}

Json to_json(const DemoResult& result) {
  Json json = to_json(result.comparison);
  json["seconds"] = result.seconds;
  return json;
}

Knobs knobs_of(DemoRequest& request) { return knobs_of(request.style); }

}  // namespace filigree::study
