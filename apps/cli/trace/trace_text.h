// Traced prompts as text.
#pragma once

#include <string>
#include <vector>

#include "filigree/trace_study.h"

namespace filigree::cli {

// With what ablations did, if any were made: one a model.
std::string trace_text(const study::TraceResult& result,
                       const std::vector<study::TraceValidation>& validations = {});
std::string task_trace_text(const study::TaskTraceResult& result);

}  // namespace filigree::cli
