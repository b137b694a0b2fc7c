// What the runs of patching take from a context: who watches, and the processes that share them.
#pragma once

#include <string>

#include "filigree/circuit.h"
#include "filigree/study.h"

namespace filigree::study {

// The options with reports to the context's watcher, an end when it asks for one, and its ranks.
// `context` must outlive them.
PatchOptions watched(PatchOptions options, const std::string& label, const Context& context);

}  // namespace filigree::study
