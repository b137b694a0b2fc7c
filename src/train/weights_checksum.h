// A number that tells models apart: the checksum of all parameters' names and values and of the
// gate's biases. A run records the one it started from and refuses to go on from another.
#pragma once

#include <cstdint>

#include "filigree/model.h"

namespace filigree {

std::uint64_t weights_checksum(const Model& model);

}  // namespace filigree
