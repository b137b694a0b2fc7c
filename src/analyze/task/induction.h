// Induction on the model's own vocabulary: random tokens, and then the same ones again. Nothing but
// the repetition predicts the next one.
#pragma once

#include "filigree/tasks.h"

namespace filigree {

// Words of one token each. Throws Error when the tokenizer has too few of them.
DrawPair induction_draw(const Tokenizer& tokenizer, corpus::CopyChange change);

}  // namespace filigree
