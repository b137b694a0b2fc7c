// A file that is written over several runs: it keeps what it has when the process ends, grows at
// its end, and gets its real name once it is complete. Whoever writes one holds a lock
// (named_lock.h) meanwhile.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/open_folder.h"

namespace filigree {

class GrowingFile {
 public:
  // Opens the file of that name, or makes it. Throws Error when it cannot be, and when it is a link
  // or no file. `folder` must outlive the object.
  GrowingFile(const OpenFolder& folder, std::string name);
  ~GrowingFile();
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;

  std::uint64_t bytes() const { return bytes_; }
  // Fills `bytes` from `offset` on; they must be there.
  void read(std::uint64_t offset, std::span<char> bytes) const;
  // Throws Error on a failed write (disk full, quota); what was written before stays.
  void append(std::string_view bytes);
  // Empties it.
  void restart();

  // Flushes the file to the disk, renames it over `name` in the same folder and flushes the entry.
  void commit_as(const std::string& name);
  // Removes the file.
  void remove();

 private:
  [[noreturn]] void failed(const char* what, int code) const;

  const OpenFolder& folder_;
  std::string name_;
  int descriptor_ = -1;
  std::uint64_t bytes_ = 0;
};

// Bytes that this process may still write to the file system of the folder.
std::uint64_t free_bytes(const OpenFolder& folder);

}  // namespace filigree
