// A lock on an open file that lasts until its descriptor is closed, which the end of the process
// does, however it comes.
#pragma once

namespace filigree {

enum class FileLocked { kByUs, kByAnother, kNotPossible };

// For writing, the whole file; does not wait. The descriptor must be open for writing. Of two
// descriptors of one process, too, only one has it.
FileLocked try_to_lock(int descriptor);
// The same with flock(2), for files that programs of others lock in this way. The two kinds do not
// see each other.
FileLocked try_to_flock(int descriptor);

}  // namespace filigree
