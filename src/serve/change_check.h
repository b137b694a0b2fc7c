// Whether changes of a run fit its prompt, asked before they are made, so that a page can refuse
// what is typed and leave out what no longer fits.
#pragma once

#include <span>

#include "serve/answer.h"
#include "serve/requests.h"

namespace filigree::serve {

// {"unfit": [{"kind", "text", "error", "elsewhere"}], "whole"}: those that a run of the prompt
// cannot make, each with the reason and whether another prompt could have it, and null or, as
// {"error", "remedy"}, why all of them together are too many. Runs nothing. Throws Error for a
// prompt that no run can have.
Json changes_json(study::Models models, const ChangesQuery& query, const Limits& limits);

}  // namespace filigree::serve
