// GPT-2: learned positions, layer norm before each part, one fused matrix for q, k and v.
#pragma once

#include "filigree/model/family.h"

namespace filigree {

extern const Family kGpt2Family;

}  // namespace filigree
