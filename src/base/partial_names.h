// The names of files that are half written, for a program that a signal ends: no destructor removes
// them then. Kept where a signal handler may look: no locks, no memory that comes and goes.
#pragma once

#include <string>

namespace filigree {

// While it lives, remove_partial_files() removes the file: `name` in the folder that `folder` is
// open at, or AT_FDCWD. Beyond 64 at once, and of names beyond 1,023 bytes, files are left; the
// next run that writes the same removes them.
class PartialName {
 public:
  PartialName() = default;
  PartialName(int folder, const std::string& name);
  ~PartialName() { forget(); }
  PartialName(PartialName&& other) noexcept;
  PartialName& operator=(PartialName&& other) noexcept;

  void forget() noexcept;

 private:
  int place_ = -1;
};

// May be called by a signal handler.
void remove_partial_files() noexcept;

}  // namespace filigree
