#include <optional>

#include "base/atomic_file.h"
#include "base/stopwatch.h"
#include "filigree/model_study.h"
#include "study/data/byte_progress.h"
#include "text/corpus/corpus_tasks.h"

namespace filigree::study {

double WrittenCorpus::megabytes_per_second() const {
  return static_cast<double>(bytes) / 1e6 / seconds;
}

WrittenCorpus run(const CorpusRequest& request, Models, const Context& context,
                  const std::function<void(std::string_view)>& sink) {
  if ((request.bytes == 0) == (request.documents == 0))
    throw RequestError("a corpus ends at a size or at a number of documents; give one of them");
  const Corpus corpus({request.tasks, context.seed, request.split});
  const Stopwatch watch;
  std::optional<AtomicFile> file;
  if (!request.out.empty()) file.emplace(request.out);
  ByteProgress progress(context, "corpus", request.bytes);
  std::uint64_t bytes = 0;
  const Corpus::Written written =
      corpus.write(request.documents, request.bytes, [&](std::string_view text) {
        if (file)
          file->write(text);
        else if (sink)
          sink(text);
        bytes += text.size();
        progress.update(bytes);
      });
  if (file) file->commit();
  progress.finish();
  return {request.out, request.split, written.documents, written.bytes, watch.seconds()};
}

Json to_json(const WrittenCorpus& written) {
  return {
      {"out", written.out.string()},    {"split", name_of(written.split)},
      {"documents", written.documents}, {"bytes", written.bytes},
      {"seconds", written.seconds},     {"megabytes_per_second", written.megabytes_per_second()}};
}

std::vector<ShownTask> show_corpus_tasks(std::uint64_t seed) {
  Random random(seed);
  std::vector<ShownTask> shown;
  for (const CorpusTask& task : corpus_tasks())
    shown.push_back({&task, make_example(task, random, DataSplit::kTrain)});
  return shown;
}

Json to_json(const std::vector<ShownTask>& tasks) {
  Json list = Json::array();
  for (const ShownTask& shown : tasks)
    list.push_back({{"name", shown.task->name},
                    {"description", shown.task->description},
                    {"example",
                     {{"prompt", shown.example.prompt},
                      {"answer", shown.example.answer},
                      {"text", shown.example.text},
                      {"wrong", shown.example.wrong},
                      {"also_right", shown.example.also_right}}}});
  return {{"tasks", list}};
}

}  // namespace filigree::study
