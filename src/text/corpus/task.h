// A task of the synthetic corpus: short texts in which one word follows from the others by one
// mechanism (copying, comparing, looking up, counting brackets, ...).
//
// A task draws an example from all it can make and names the combination of its slots that makes it
// what it is: the two summands, the two names, the country and the sentence. Combinations are held
// out by a hash of that name, so a held-out example asks for something that no training example
// shows, and no held-out text ever occurs in training.
//
// To add a task: one file with its draw function, a declaration in tasks.h and a line in tasks.cpp.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/names.h"
#include "base/random.h"
#include "text/data_split.h"

namespace filigree {

// What a stretch of a prompt is to its task: "IO", "S1".
struct RoleSpan {
  std::string role = {};
  std::size_t begin = 0, end = 0;  // bytes of the prompt
};

struct TaskExample {
  std::string prompt;
  std::string answer;                   // with the space before it, where there is one
  std::string text;                     // prompt + answer + whatever follows
  std::vector<std::string> also_right;  // other answers that would be right
  std::vector<std::string> wrong;       // plausible answers that are wrong; never empty
  std::string combination;
  std::vector<RoleSpan> roles = {};  // of the prompt, from its beginning; of pairs only (pairs.h)
};

struct CorpusTask {
  std::string_view name;
  std::string_view description;
  TaskExample (*draw)(Random& random);
};

// One combination in 16 is held out.
bool is_held_out(std::string_view task, std::string_view combination);

// Draws until the example belongs to the split.
TaskExample make_example(const CorpusTask& task, Random& random, DataSplit split);

}  // namespace filigree
