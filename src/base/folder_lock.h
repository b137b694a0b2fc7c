// Keeps a folder to one process: a file "lock" in it that says who holds it, locked for as long as
// the object lives. The kernel drops the lock with the process, whatever ends it, so one that a
// killed process left behind is taken over and never in the way.
#pragma once

#include <filesystem>

namespace filigree {

class FolderLock {
 public:
  // Throws Error, naming who holds it, when another process (or another object) has it. Where the
  // file system knows no locks, warns and goes on.
  explicit FolderLock(const std::filesystem::path& folder);
  // Removes the file.
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  std::filesystem::path file_;
  int descriptor_ = -1;
};

}  // namespace filigree
