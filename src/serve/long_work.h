// What runs as a job behind the page: circuits of tasks and sweeps of patches.
#pragma once

#include <span>

#include "serve/job_result.h"
#include "serve/requests.h"

namespace filigree::serve {

// As `filigree circuit --json`, and "figures": [{"title", "svg", "dark_svg"}].
JobResult circuit_work(study::Models models, const CircuitQuery& query,
                       const study::Context& context);

// As `filigree patch --json`, and "figures".
JobResult sweep_work(study::Models models, const SweepQuery& query, const study::Context& context);

}  // namespace filigree::serve
