#include "base/file_status.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <string_view>
#include <system_error>

#include "base/open_folder.h"
#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree {
namespace {

std::optional<FileStatus> status_at(const std::filesystem::path& path, int flags) {
  // The system would look at what stands before the zero byte.
  require(path.native().find('\0') == std::string::npos,
          "'{}' is no name of a file: it holds a zero byte", printable(path.string(), 400));
  struct stat status = {};
  if (::fstatat(AT_FDCWD, path.c_str(), &status, flags) == 0) return status_from(status);
  const int code = errno;
  if (code == ENOENT || code == ENOTDIR) return std::nullopt;
  fail("cannot look at '{}': {}", printable(path.string(), 400),
       std::generic_category().message(code));
}

}  // namespace

FileStatus status_from(const struct stat& status) {
  const FileKind kind = S_ISREG(status.st_mode)   ? FileKind::kFile
                        : S_ISDIR(status.st_mode) ? FileKind::kFolder
                        : S_ISLNK(status.st_mode) ? FileKind::kLink
                                                  : FileKind::kOther;
  return {kind, static_cast<std::uint64_t>(status.st_size)};
}

std::optional<FileStatus> status_of(const std::filesystem::path& path) {
  return status_at(path, 0);
}

std::optional<FileStatus> entry_status_of(const std::filesystem::path& path) {
  return status_at(path, AT_SYMLINK_NOFOLLOW);
}

bool is_there(const std::filesystem::path& path) { return entry_status_of(path).has_value(); }

bool is_file(const std::filesystem::path& path) {
  const std::optional<FileStatus> status = status_of(path);
  return status && status->kind == FileKind::kFile;
}

bool is_folder(const std::filesystem::path& path) {
  const std::optional<FileStatus> status = status_of(path);
  return status && status->kind == FileKind::kFolder;
}

std::uint64_t bytes_of_file(const std::filesystem::path& path) {
  const std::optional<FileStatus> status = status_of(path);
  require(status.has_value(), "cannot read '{}': {}", printable(path.string(), 400),
          std::generic_category().message(ENOENT));
  require(status->kind == FileKind::kFile, "cannot read '{}': not a regular file",
          printable(path.string(), 400));
  return status->bytes;
}

std::vector<FolderEntry> entries_of(const std::filesystem::path& folder) {
  return OpenFolder(folder).entries();
}

}  // namespace filigree
