// While commands are moved to studies, which have it.
#pragma once

#include "filigree/study/summary/memory_estimate.h"

namespace filigree::cli {

using study::estimate_memory;
using study::MemoryEstimate;

}  // namespace filigree::cli
