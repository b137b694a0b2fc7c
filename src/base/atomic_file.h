// Writes a file beside its final place and renames it there on commit(), so that a crash, a full
// disk or an exception never leaves half a file and never destroys the previous one.
//
// A symbolic link is followed: the file it names is replaced, the link stays. A device or a pipe
// (/dev/null, /dev/stdout) cannot be replaced and is written to directly.
//
// What a killed process left of an earlier attempt at the same file is removed; what a living one
// is still writing is locked, and stays.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

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
  void create_partial();
  [[noreturn]] void write_error(const char* what, int code);

  std::filesystem::path path_;     // as the caller gave it, for messages
  std::filesystem::path target_;   // what is replaced
  std::filesystem::path partial_;  // empty when there is nothing to remove or to rename
  int descriptor_ = -1;
  bool failed_ = false;
};

// The whole of a small text file in one call.
void write_file_atomically(const std::filesystem::path& path, std::string_view text);

}  // namespace filigree
