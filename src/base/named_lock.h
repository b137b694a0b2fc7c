// A lock that is a file by a name which several programs agree on (flock). The file stays when the
// lock is given back: who removes it splits those that wait from those that come.
#pragma once

#include <optional>
#include <string>

#include "base/open_folder.h"

namespace filigree {

class NamedLock {
 public:
  // Nothing while another process, or another object of this one, has it. Throws Error when the
  // file cannot be made or opened, or is a link. Where the file system knows no locks, warns and
  // goes on.
  static std::optional<NamedLock> try_to_take(const OpenFolder& folder, const std::string& name);
  ~NamedLock();
  NamedLock(NamedLock&& other) noexcept;
  NamedLock& operator=(NamedLock&& other) noexcept;

 private:
  explicit NamedLock(int descriptor) : descriptor_(descriptor) {}

  int descriptor_ = -1;
};

}  // namespace filigree
