// Writes a file beside its final place and renames it there on commit(), so that a crash, a full
// disk or an exception never leaves half a file and never destroys the previous one.
//
// A symbolic link in the place of the file is replaced by it, whoever named it: what the link leads
// to stays as it is. The folders before it are followed, since the user named them, but not below
// an OutputFolder (output_folder.h), where a link in the place of a folder is an error. The file is
// made, renamed and removed inside the folder as it was opened, wherever that folder's name leads
// later.
//
// A device or a pipe that the user named cannot be replaced and is written to directly, and so are
// the links of the system to what a process has open (/dev/stdout, /dev/fd/3, /proc/self/fd/3). In
// an OutputFolder a device or a pipe is an error.
//
// What a killed process left of an earlier attempt at the same file is removed; what a living one
// is still writing is locked, and stays.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/open_folder.h"
#include "base/partial_names.h"

namespace filigree {

class AtomicFile {
 public:
  // Creates "<path>.<pid>-<n>.partial"; throws Error when the folder cannot be written or `path` is
  // a folder.
  explicit AtomicFile(std::filesystem::path path);

  // Removes the partial file unless commit() succeeded.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Throws Error on a failed write (disk full, quota); the target is then still untouched, and
  // commit() refuses to put the incomplete file in its place.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);

  // Flushes to the disk, renames over the target and flushes the folder entry. At most once. Throws
  // Error when any of it fails; where only the last did, the target is the new file already, and a
  // power cut might bring the old one back.
  void commit();

 private:
  void open_directly();
  void remove_left_behind() const;
  void create_partial();
  [[noreturn]] void write_error(const char* what, int code);

  std::filesystem::path path_;        // as the caller gave it
  std::optional<OpenFolder> folder_;  // that it lies in; nothing where it is written to directly
  std::string partial_;               // empty when there is nothing to remove or to rename
  PartialName told_;                  // the same, for signal handlers
  int descriptor_ = -1;
  bool failed_ = false;
};

// The whole of a small text file in one call.
void write_file_atomically(const std::filesystem::path& path, std::string_view text);

}  // namespace filigree
