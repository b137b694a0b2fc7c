// Softmax and its logarithm over the last axis. Minus infinity gives exactly zero; a row that is
// all minus infinity is an Error-free row of zeros in softmax, so masked rows stay defined.
#pragma once

#include "autograd/variable.h"

namespace filigree {

Variable softmax(const Variable& x);
Variable log_softmax(const Variable& x);

}  // namespace filigree
