// What this build is: written into every output, so that a result can be traced to the code that
// made it.
#pragma once

#include <string>

namespace filigree {

// "0.1.0", or "0.1.0+3f2a9c1" with the commit, ".modified" appended when the tree had changes.
// Without the commit when it was built outside a git checkout.
std::string version_string();

// One line: version, compiler, build type, and the optional parts that are in.
// "filigree 0.1.0+3f2a9c1 (GCC 12.2.0, Release, without CUDA)".
std::string build_description();

}  // namespace filigree
