// The one way to ask what is at a path. Only ENOENT and ENOTDIR mean that nothing is there.
// Whatever else goes wrong (EIO, EACCES, ELOOP, ENAMETOOLONG, ...) is an Error that names the path:
// a file that cannot be looked at must never pass for one that is missing, or a damaged model would
// be used and a run would start over. tools/check-files refuses every other way to ask.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

struct stat;  // of <sys/stat.h>

namespace filigree {

enum class FileKind {
  kFile,
  kFolder,
  kLink,   // only where links are not followed
  kOther,  // a device, a pipe or a socket
};

struct FileStatus {
  FileKind kind = FileKind::kFile;
  std::uint64_t bytes = 0;
};

FileStatus status_from(const struct ::stat& status);

// Of what the path names once links are followed. Nothing for a link that leads nowhere.
std::optional<FileStatus> status_of(const std::filesystem::path& path);
// Of the entry itself, which may be a link.
std::optional<FileStatus> entry_status_of(const std::filesystem::path& path);

// Whether there is an entry of any kind; a link that leads nowhere is one.
bool is_there(const std::filesystem::path& path);
// Links are followed.
bool is_file(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);

// The size of a regular file. Throws Error when there is none.
std::uint64_t bytes_of_file(const std::filesystem::path& path);

struct FolderEntry {
  std::string name;
  FileKind kind = FileKind::kFile;  // of the entry itself, which may be a link
};

// All entries of a folder but "." and "..", sorted by name. Throws Error when there is no folder or
// it cannot be read to its end.
std::vector<FolderEntry> entries_of(const std::filesystem::path& folder);

}  // namespace filigree
