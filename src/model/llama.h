// Llama: rotary positions, RMS norm before each part, separate matrices for q, k, v and o with
// fewer heads for keys and values, a gated MLP.
#pragma once

#include "filigree/model/family.h"

namespace filigree {

extern const Family kLlamaFamily;

}  // namespace filigree
