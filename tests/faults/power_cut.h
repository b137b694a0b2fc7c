// What a disk may hold after a power cut: from the operations that a run made (FAULTS_TRACE of
// shim.cpp), the states of the folder that the rules of POSIX allow.
//
// Bytes are safe once their file was flushed, names once their folder was. Everything else may be
// there, or not, or in part.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/faults/process.h"

namespace filigree::faults {

struct Operation {
  char kind = 0;  // as shim.cpp writes them
  long a = 0, b = 0;
  std::string path, other, bytes;
};
std::vector<Operation> read_trace(const fs::path& file);

enum class Survives {
  kFlushed,  // what was flushed and nothing more
  kNames,    // all names, and of the bytes what was flushed
  kSome,     // each folder as it was at some moment since its last flush, each file up to some byte
  kEverything,  // as a kill leaves it
};

// The files below `folder` after the first `count` operations and a power cut.
Tree after_power_cut(const std::vector<Operation>& trace, std::size_t count, const fs::path& folder,
                     Survives survives, std::uint64_t seed);

}  // namespace filigree::faults
