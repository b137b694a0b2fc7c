// The synthetic task corpus: documents of a few examples each.
//
// Document number i of a seed and split is a function of these alone, so any number of threads can
// write the corpus and any part of it can be made again. The training and the held-out split share
// no combination (task.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "text/corpus/task.h"

namespace filigree {

struct TaskShare {
  const CorpusTask* task = nullptr;
  double weight = 1;
};

struct CorpusOptions {
  std::vector<TaskShare> tasks{};  // empty: all, equally
  std::uint64_t seed = 0;
  DataSplit split = DataSplit::kTrain;
};

class Corpus {
 public:
  // Throws Error when a weight is negative or not a number, or all are 0.
  explicit Corpus(CorpusOptions options);

  // Between one and six examples, half of the time of one task. Ends without a line break.
  std::string document(std::uint64_t index) const;

  struct Written {
    std::uint64_t documents = 0;
    std::uint64_t bytes = 0;
  };

  // Gives out documents 0, 1, ..., each followed by a line <|endoftext|>, in blocks of text, until
  // there are `documents` or at least `bytes` bytes, whichever comes first (0: no such limit; one
  // must be given). `sink` may throw to stop.
  Written write(std::uint64_t documents, std::uint64_t bytes,
                const std::function<void(std::string_view)>& sink) const;

 private:
  const CorpusTask& draw_task(Random& random) const;

  CorpusOptions options_;
  double total_weight_ = 0;
};

}  // namespace filigree
