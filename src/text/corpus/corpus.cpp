#include <algorithm>
#include <cmath>

#include "filigree/data.h"
#include "filigree/error.h"
#include "filigree/runtime.h"
#include "text/corpus/corpus_tasks.h"
#include "text/tokenizer_files.h"

namespace filigree {
namespace {

constexpr std::uint64_t kMostExamples = 6;
constexpr std::uint64_t kDocumentsAtOnce = 2048;
// Held-out documents come from other streams than training documents of the same number.
constexpr std::uint64_t kHeldOutStream = std::uint64_t{1} << 63;

}  // namespace

Corpus::Corpus(CorpusOptions options) : options_(std::move(options)) {
  if (options_.tasks.empty())
    for (const CorpusTask& task : corpus_tasks()) options_.tasks.push_back({&task, 1.0});
  for (const TaskShare& share : options_.tasks) {
    require(std::isfinite(share.weight) && share.weight >= 0,
            "corpus: the weight {} of task '{}' is not a number from 0 on", share.weight,
            share.task->name);
    total_weight_ += share.weight;
  }
  require(total_weight_ > 0 && std::isfinite(total_weight_),
          "corpus: the weights of the tasks add up to {}", total_weight_);
}

const CorpusTask& Corpus::draw_task(Random& random) const {
  double left = random.uniform_double() * total_weight_;
  const CorpusTask* last = nullptr;
  for (const TaskShare& share : options_.tasks) {
    if (share.weight > 0) last = share.task;
    left -= share.weight;
    if (left < 0) break;
  }
  return *last;
}

std::string Corpus::document(std::uint64_t index) const {
  const bool held_out = options_.split == DataSplit::kHeldOut;
  Random random(options_.seed, index | (held_out ? kHeldOutStream : 0));
  const std::uint64_t count = 1 + random.below(kMostExamples);
  const bool one_task = random.below(2) == 0;
  const CorpusTask* task = nullptr;
  std::string text;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (task == nullptr || !one_task) task = &draw_task(random);
    if (i > 0) text += '\n';
    text += make_example(*task, random, options_.split).text;
  }
  return text;
}

Corpus::Written Corpus::write(std::uint64_t documents, std::uint64_t bytes,
                              const std::function<void(std::string_view)>& sink) const {
  require(documents > 0 || bytes > 0, "corpus: neither a number of documents nor a size was given");
  Written written;
  std::vector<std::string> block(kDocumentsAtOnce);
  while (true) {
    parallel_for(static_cast<std::int64_t>(block.size()), 16,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i)
                     block[static_cast<std::size_t>(i)] =
                         document(written.documents + static_cast<std::uint64_t>(i));
                 });
    std::string text;
    bool done = false;
    for (std::size_t i = 0; i < block.size() && !done; ++i) {
      text += block[i];
      text += '\n';
      text += kEndOfText;
      text += '\n';
      ++written.documents;
      done = written.documents == documents || (bytes > 0 && written.bytes + text.size() >= bytes);
    }
    written.bytes += text.size();
    sink(text);
    if (done) return written;
  }
}

}  // namespace filigree
