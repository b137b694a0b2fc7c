// What models say to requests: studies of the library, as JSON.
#pragma once

#include <span>

#include "serve/answer.h"
#include "serve/requests.h"

namespace filigree::serve {

// The models with their heads, the built-in tasks, the colours of pages and the limits.
Json models_json(study::Models models, const Limits& limits);

}  // namespace filigree::serve
