// Pairs of prompts that differ only in what decides the answer, for patching and circuits.
//
// The clean prompt is an example of the task (task.h), in the sentences of the corpus. The corrupt
// one is the same sentence with another name, word or number in it; it asks for another answer or
// for none. Whether the two have equally many tokens is for the reader of the pair to check.
#pragma once

#include <string>
#include <string_view>

#include "base/random.h"
#include "text/corpus/task.h"

namespace filigree {

struct TaskPair {
  TaskExample clean;    // `wrong` has the answer of the corrupt prompt, where it has one
  std::string corrupt;  // a prompt
};

namespace corpus {

enum class NameOrder { kEither, kAbba, kBaba };
enum class GiverChange {
  kThirdPerson,  // somebody who was not named before gives: the receiver is open
  kExchanged,    // the other one of the two gives: the answer is the other name
  kOtherNames,   // three people nobody named before
};
TaskPair pair_indirect_object(Random& random, NameOrder order, GiverChange change);

enum class YearChange {
  kFirstYear,  // year 01, after which nearly every year is right
  kOtherYear,  // another year
};
TaskPair pair_greater_than(Random& random, YearChange change);

TaskPair pair_pronoun(Random& random);    // a name of the other gender
TaskPair pair_agreement(Random& random);  // the subject in the other number
TaskPair pair_antonym(Random& random);    // another word
TaskPair pair_capital(Random& random);    // another country

enum class CopyChange {
  kOneWord,   // another word where the answer stands the first time
  kAllWords,  // other words the first time: there is nothing to copy
};
TaskPair pair_copy(Random& random, CopyChange change);

enum class ArgumentChange {
  kOneArgument,   // another name where the signature has the answer
  kAllArguments,  // a signature of other names
};
TaskPair pair_docstring(Random& random, ArgumentChange change);

TaskPair pair_addition(Random& random);  // another second summand

}  // namespace corpus
}  // namespace filigree
