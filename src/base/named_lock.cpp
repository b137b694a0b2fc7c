#include "base/named_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/file_lock.h"
#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree {

std::optional<NamedLock> NamedLock::try_to_take(const OpenFolder& folder, const std::string& name) {
  const std::string shown = printable((folder.path() / name).string(), 400);
  while (true) {
    // Others of the group may share the folder.
    const int descriptor = ::openat(folder.descriptor(), name.c_str(),
                                    O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0664);
    const int opened = errno;
    require(descriptor >= 0, "cannot lock '{}': {}", shown,
            opened == ELOOP ? "it is a symbolic link" : std::generic_category().message(opened));
    NamedLock lock(descriptor);
    const FileLocked locked = try_to_flock(descriptor);
    if (locked == FileLocked::kByAnother) return std::nullopt;
    if (locked == FileLocked::kNotPossible)
      warn("'{}' cannot be locked on this file system; run no other download of it", shown);
    struct stat status = {};
    const int code = ::fstat(descriptor, &status) == 0 ? 0 : errno;
    require(code == 0, "cannot lock '{}': {}", shown, std::generic_category().message(code));
    // Of a file that was removed between the two calls the lock guards nothing.
    if (status.st_nlink > 0) return lock;
  }
}

NamedLock::~NamedLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

NamedLock::NamedLock(NamedLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

NamedLock& NamedLock::operator=(NamedLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

}  // namespace filigree
