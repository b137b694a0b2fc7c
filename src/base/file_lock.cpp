#include "base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

namespace filigree {

FileLocked try_to_lock(int descriptor) {
  struct flock whole = {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (::fcntl(descriptor, F_OFD_SETLK, &whole) == 0) return FileLocked::kByUs;
  return errno == EAGAIN || errno == EACCES ? FileLocked::kByAnother : FileLocked::kNotPossible;
}

FileLocked try_to_flock(int descriptor) {
  while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    return errno == EWOULDBLOCK || errno == EACCES ? FileLocked::kByAnother
                                                   : FileLocked::kNotPossible;
  }
  return FileLocked::kByUs;
}

}  // namespace filigree
