// What is on the screen as a file: figures by the figure code, numbers for other programs.
#pragma once

#include <span>

#include "serve/answer.h"
#include "serve/job_result.h"
#include "serve/requests.h"

namespace filigree::serve {

// `models` are those of the query, side by side.
Answer export_answer(study::Models models, const ExportQuery& query, const Limits& limits,
                     const study::Context& context);

// A figure of a job's result, or its numbers without the figures.
Answer job_export_answer(const JobResult& result, const JobExportQuery& query);

}  // namespace filigree::serve
