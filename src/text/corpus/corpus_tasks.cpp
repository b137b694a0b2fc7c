#include "text/corpus/corpus_tasks.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/checksum.h"
#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree {
namespace {

constexpr std::uint64_t kHeldOutShare = 16;  // one in so many
// Each task has far more combinations than that; only a broken one runs into it.
constexpr int kMostDraws = 100000;

constexpr CorpusTask kTasks[] = {
    {"indirect_object", "of two people, the one who did not act receives (ABBA and BABA)",
     corpus::draw_indirect_object},
    {"greater_than", "an end year after the beginning, within the century",
     corpus::draw_greater_than},
    {"pronoun", "he or she, his or her, after a name", corpus::draw_pronoun},
    {"antonym", "the opposite of a word in quotes", corpus::draw_antonym},
    {"capital", "the capital of a country", corpus::draw_capital},
    {"copy", "random words a second time", corpus::draw_copy},
    {"docstring", "the next argument of a function in its documentation", corpus::draw_docstring},
    {"addition", "the sum of two numbers of two digits", corpus::draw_addition},
    {"agreement", "a verb in the number of its subject, past a distracting noun",
     corpus::draw_agreement},
    {"entity", "where a thing or a person is after several moves", corpus::draw_entity},
    {"brackets", "the bracket that closes the innermost open one", corpus::draw_brackets},
};

}  // namespace

std::span<const CorpusTask> corpus_tasks() { return kTasks; }

const CorpusTask& corpus_task(std::string_view name) {
  std::vector<std::string> names;
  for (const CorpusTask& task : kTasks) {
    if (task.name == name) return task;
    names.emplace_back(task.name);
  }
  fail("corpus: there is no task '{}'; nearest: {}", printable(name),
       join(nearest_names(name, names, 3), ", "));
}

bool is_held_out(std::string_view task, std::string_view combination) {
  return xxh64(fmt::format("{}\n{}", task, combination)) % kHeldOutShare == 0;
}

TaskExample make_example(const CorpusTask& task, Random& random, DataSplit split) {
  for (int i = 0; i < kMostDraws; ++i) {
    TaskExample example = task.draw(random);
    if (is_held_out(task.name, example.combination) == (split == DataSplit::kHeldOut))
      return example;
  }
  fail("corpus: task '{}' draws nothing for this split", task.name);
}

}  // namespace filigree
