// The list of tasks.
#pragma once

#include <span>
#include <string_view>

#include "filigree/data.h"

namespace filigree {

// All tasks, in the order of the documentation.
std::span<const CorpusTask> corpus_tasks();

// Throws Error that lists the tasks nearest in name.
const CorpusTask& corpus_task(std::string_view name);

namespace corpus {

TaskExample draw_indirect_object(Random& random);
TaskExample draw_greater_than(Random& random);
TaskExample draw_pronoun(Random& random);
TaskExample draw_antonym(Random& random);
TaskExample draw_capital(Random& random);
TaskExample draw_copy(Random& random);
TaskExample draw_docstring(Random& random);
TaskExample draw_addition(Random& random);
TaskExample draw_agreement(Random& random);
TaskExample draw_entity(Random& random);
TaskExample draw_brackets(Random& random);

}  // namespace corpus
}  // namespace filigree
