// The story of one prompt in a comparison: both models traced through their features.
#pragma once

#include <span>

#include "study/comparison/comparison_files.h"

namespace filigree::study {

// Traces the request's prompt, writes the figures of heads and graph in every format, the graphs
// for viewers and what was found, and returns the section of the page.
ReportTask write_trace(const ComparisonRequest& request, Models models, ComparisonResult& result,
                       ComparisonFolder& folder, const Context& context);

}  // namespace filigree::study
