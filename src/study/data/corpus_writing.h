// The synthetic task corpus as a file, and what its tasks are.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include "study/context.h"
#include "study/json.h"
#include "text/corpus/corpus.h"

namespace filigree::study {

struct CorpusRequest {
  std::vector<TaskShare> tasks{};  // empty: all, equally
  DataSplit split = DataSplit::kTrain;
  // Where it ends; one of them.
  std::uint64_t bytes = 0;
  std::uint64_t documents = 0;
  std::filesystem::path out{};  // empty: given to `sink` instead
};

struct WrittenCorpus {
  std::filesystem::path out;
  DataSplit split = DataSplit::kTrain;
  std::uint64_t documents = 0;
  std::uint64_t bytes = 0;
  double seconds = 0.0;

  double megabytes_per_second() const;
};

WrittenCorpus write_corpus(const CorpusRequest& request, const Context& context,
                           const std::function<void(std::string_view)>& sink = {});

Json to_json(const WrittenCorpus& written);

// A task with an example.
struct ShownTask {
  const CorpusTask* task = nullptr;
  TaskExample example;
};

// All of them; the seed chooses the examples.
std::vector<ShownTask> show_corpus_tasks(std::uint64_t seed);

Json to_json(const std::vector<ShownTask>& tasks);

}  // namespace filigree::study
