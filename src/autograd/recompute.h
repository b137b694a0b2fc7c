// Part of a computation whose intermediates are not kept but computed a second time in the backward
// pass: memory for time.
#pragma once

#include <functional>
#include <vector>

#include "filigree/autograd.h"

namespace filigree {

struct Recomputed {
  Variable value;
  Variable second = {};  // another result, or undefined
  Tensor note = {};      // handed through from the first run, without a gradient
};

// The results of part(x). Nothing of it is recorded but x; the backward pass runs it again, to the
// same bits if `part` gives the same results for the same x, and its gradients go to x and to the
// leaves that it reads. `leaves` are those, for a tape that watches them. Without a tape it is just
// part(x).
Recomputed recompute(const Variable& x, const std::vector<Variable>& leaves,
                     const std::function<Recomputed(const Variable&)>& part);

}  // namespace filigree
