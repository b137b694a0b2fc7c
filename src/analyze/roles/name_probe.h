// Sentences of the task ioi ("When Mary and John went to the store, John gave a drink to") with
// where their names stand: what shows heads that read names.
#pragma once

#include <cstdint>
#include <vector>

#include "analyze/prompt.h"
#include "text/tokenizer.h"

namespace filigree {

struct NameProbe {
  Prompt prompt = {};
  std::int64_t receiver = 0;           // the name that is said once, Mary
  std::int64_t first = 0, second = 0;  // both mentions of the other, John
};

struct NameProbeOptions {
  std::size_t prompts = 48;
  std::uint64_t seed = 0;
  std::int64_t vocabulary = 0, context = 0;  // of the model
};

// Fewer, or none, where the tokenizer makes several tokens of the names.
std::vector<NameProbe> make_name_probes(const Tokenizer& tokenizer,
                                        const NameProbeOptions& options);

}  // namespace filigree
