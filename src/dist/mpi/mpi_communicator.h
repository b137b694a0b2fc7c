// Ranks that speak through MPI; linked only where kHasMpi.
#pragma once

#include <memory>

#include "filigree/ranks.h"

namespace filigree::mpi {

// Starts MPI; it is stopped when the communicator goes.
std::unique_ptr<Communicator> make_communicator();

}  // namespace filigree::mpi
