// The folder that a command writes. Whoever writes a folder makes one of these first and keeps it
// until all is written:
//
//   - The folder is made, and held by its descriptor. The path is followed where it is a link, for
//   the
//     user named it; below it no link is followed any more. AtomicFile, make_folders and
//     folder_to_write find the folder by its path, so that code which only has paths keeps to this.
//   - It is locked: a file "lock" in it says who holds it. The kernel drops the lock with the
//   process,
//     whatever ends it, so one that a killed process left behind is taken over and never in the
//     way.
#pragma once

#include <filesystem>
#include <optional>

#include "base/open_folder.h"

namespace filigree {

class OutputFolder {
 public:
  enum class Users {
    kOne,   // locked
    kMany,  // not locked: a folder of files that are named one by one, each of them whole
  };

  // Throws Error when the folder cannot be made or opened, and, naming who holds it, when another
  // process (or another object) has it. Where the file system knows no locks, warns and goes on.
  explicit OutputFolder(std::filesystem::path path, Users users = Users::kOne);
  // Gives the lock back; removes the folder where it was made here and nothing was written.
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  // False when another process removed the folder meanwhile.
  bool try_lock();

  std::filesystem::path path_;
  std::optional<OpenFolder> folder_;
  int lock_ = -1;
  bool made_ = false;
};

// Where a path leads when something is to be written there.
struct FolderToWrite {
  OpenFolder folder;
  // Of an OutputFolder that this process holds, or below one: opened without following links.
  bool held = false;
};

enum class MissingFolders { kFail, kMake };

// Opens a folder to write into. Throws Error when it is not there and is not to be made, or when a
// link leads there from inside an OutputFolder.
FolderToWrite folder_to_write(const std::filesystem::path& folder,
                              MissingFolders missing = MissingFolders::kFail);

}  // namespace filigree
