// Arcs between tokens as figure and as numbers: those of one token, and those of texts that models
// have gone on with.
#pragma once

#include <span>

#include "filigree/figures.h"
#include "serve/answer.h"
#include "serve/requests.h"

namespace filigree::serve {

struct Arcs {
  figure::TokenArcs figure = {};
  Json json = {};  // {"prompt", "least", "models": [{"model", "tokens", "edges": [{"head", "query",
                   // "key", "weight"}]}]}
};

// Where the information of a token of the prompt comes from and goes to. Throws Refusal for maps
// that are too large.
Arcs token_arcs(study::Models models, const ExportQuery& query, const Limits& limits,
                const study::Context& context);

// What heads look at from each token that the models go on with.
Arcs generated_arcs(study::Models models, const ExportQuery& query, const study::Context& context);

}  // namespace filigree::serve
