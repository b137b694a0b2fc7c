// Ranks whose sums on GPUs go through NCCL; linked only where kHasNccl.
#pragma once

#include <memory>

#include "filigree/ranks.h"

namespace filigree::nccl {

// Everything but the sums of values on the GPU is done by `host`. NCCL starts with the first of
// those, so work that has none may share a GPU between ranks.
std::unique_ptr<Communicator> make_communicator(std::unique_ptr<Communicator> host);

}  // namespace filigree::nccl
