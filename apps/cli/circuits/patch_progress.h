// What the runs of patching take from the session: a bar, and the processes that share them.
#pragma once

#include <string>

#include "apps/cli/program/session.h"
#include "filigree/analyze/circuit/patched_runs.h"

namespace filigree::cli {

// The options with a bar on stderr that stops the work on Ctrl-C, shared by the session's ranks.
// `session` must outlive them.
PatchOptions with_bar(PatchOptions options, const std::string& label, const Session& session);

}  // namespace filigree::cli
