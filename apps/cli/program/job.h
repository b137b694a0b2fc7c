// The processes that run a command together, `mpirun -n N filigree ...`, and how they end: rank 0
// speaks for all of them, and a rank that fails does not leave the others waiting.
#pragma once

#include <memory>
#include <string>

#include "apps/cli/program/session.h"
#include "filigree/ranks.h"

namespace filigree::cli {

class Job {
 public:
  // Becomes one of the processes that a launcher started; without one it touches no MPI. Fills in
  // the threads of a rank that shares its machine with others, unless they were given. Throws
  // UsageError when several were started for a command that they cannot share.
  void join(const std::string& command, bool parallel, CommonOptions& options);

  // After join().
  Communicator& ranks() const { return *ranks_; }

  // For a process that ends with this message on stderr ("": none). Returns the exit code when all
  // ranks end so, rank 0 alone with a message, and otherwise ends all of them.
  int failed(const std::string& message, int exit_code);

 private:
  std::unique_ptr<Communicator> ranks_;  // leaving the job waits for all ranks
};

}  // namespace filigree::cli
