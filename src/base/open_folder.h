// A folder held open by its descriptor: what is done in it is done in that very folder, whatever
// becomes of its name meanwhile, and no link in it is followed.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/file_status.h"

namespace filigree {

class OpenFolder {
 public:
  // Follows links, as whoever names a folder expects. Throws Error when there is no folder or it
  // cannot be opened.
  explicit OpenFolder(const std::filesystem::path& path);
  ~OpenFolder();
  OpenFolder(OpenFolder&& other) noexcept;
  OpenFolder& operator=(OpenFolder&& other) noexcept;

  // The folder of that name in this one. Throws Error when there is none, and when it is a link.
  OpenFolder subfolder(const std::string& name) const;
  // Makes it where nothing of that name is there, and flushes its entry.
  void make_subfolder(const std::string& name) const;
  // Makes the symbolic link `name` to `target`, as it is written. False where an entry of that name
  // is there already.
  bool make_link(const std::string& name, const std::string& target) const;
  // Where the link of that name leads, as it is written; nothing when there is no link.
  std::optional<std::string> link_target(const std::string& name) const;
  // The same folder again, with a descriptor of its own.
  OpenFolder again() const;

  // Of an entry, which may be a link; nothing when it is not there.
  std::optional<FileStatus> status_of(const std::string& name) const;
  // As entries_of (file_status.h).
  std::vector<FolderEntry> entries() const;
  // False for a folder that may be written and not read: entries() then throws, flush() does
  // nothing.
  bool readable() const { return readable_; }

  // Waits until the entries (files made, renamed, removed) are on the disk. Throws Error when they
  // cannot be written; a file system that cannot flush a folder at all is no error.
  void flush() const;

  // For openat, renameat and unlinkat.
  int descriptor() const { return descriptor_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  OpenFolder() = default;

  std::filesystem::path path_;  // for messages
  int descriptor_ = -1;
  bool readable_ = true;
};

}  // namespace filigree
