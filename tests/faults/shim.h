// What the two halves of the preloaded library share: shim.cpp sees what changes files,
// shim_reads.cpp what looks at them.
#pragma once

#include <sys/types.h>

namespace filigree::faults::shim {

// The whole path, written to `whole` of PATH_MAX bytes, without following a link in its last part;
// "" where it is not below FAULTS_UNDER.
const char* below(int folder, const char* path, char* whole);

// Whether a file or folder below FAULTS_UNDER is open there.
bool is_watched(int descriptor);

// Counts a look at a file; true when it is to fail, with errno set.
bool read_goes_wrong();

}  // namespace filigree::faults::shim
