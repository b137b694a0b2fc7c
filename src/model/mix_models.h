// The weighted average of two models of one shape. Between runs of which one went on from the other
// the loss often has no barrier, and lies below a straight line.
#pragma once

#include "filigree/model.h"

namespace filigree {

// Every parameter and gate bias of `model` becomes (1 - share) of its own value and `share` of that
// of `other`. A single bias stands for as many as the other model has. Throws Error, with `model`
// as it was, when parameters differ in name or shape, when one model alone has gates, or for
// adapters; merge them first.
void mix_models(Model& model, const Model& other, double share);

}  // namespace filigree
