#include "base/open_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree {
namespace {

std::string in_words(int code) { return std::generic_category().message(code); }

std::string shown_folder(const std::filesystem::path& path) {
  return printable(path.string(), 400);
}

// By name alone where the folder may not be read: enough to write into it.
int open_folder_at(int at, const char* name, int more_flags, bool& readable) {
  const int flags = O_DIRECTORY | O_CLOEXEC | more_flags;
  int descriptor = ::openat(at, name, O_RDONLY | flags);
  readable = descriptor >= 0 || errno != EACCES;
  if (!readable) descriptor = ::openat(at, name, O_PATH | flags);
  return descriptor;
}

// Nothing where the file system does not say.
std::optional<FileKind> kind_of(unsigned char type) {
  switch (type) {
    case DT_UNKNOWN: return std::nullopt;
    case DT_REG: return FileKind::kFile;
    case DT_DIR: return FileKind::kFolder;
    case DT_LNK: return FileKind::kLink;
    default: return FileKind::kOther;
  }
}

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

}  // namespace

OpenFolder::OpenFolder(const std::filesystem::path& path) : path_(path.empty() ? "." : path) {
  descriptor_ = open_folder_at(AT_FDCWD, path_.c_str(), 0, readable_);
  const int code = errno;
  require(descriptor_ >= 0, "cannot open the folder '{}': {}", shown_folder(path_), in_words(code));
}

OpenFolder::~OpenFolder() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

OpenFolder::OpenFolder(OpenFolder&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      readable_(other.readable_) {}

OpenFolder& OpenFolder::operator=(OpenFolder&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(readable_, other.readable_);
  return *this;
}

OpenFolder OpenFolder::subfolder(const std::string& name) const {
  OpenFolder inside;
  inside.path_ = path_ / name;
  inside.descriptor_ = open_folder_at(descriptor_, name.c_str(), O_NOFOLLOW, inside.readable_);
  if (inside.descriptor_ >= 0) return inside;
  const int code = errno;
  const std::optional<FileStatus> there = status_of(name);
  if (there && there->kind == FileKind::kLink)
    fail(
        "'{}' is a symbolic link, and nothing is written through links in an output folder; "
        "remove it, or choose another folder",
        shown_folder(inside.path_));
  fail("cannot open the folder '{}': {}", shown_folder(inside.path_), in_words(code));
}

void OpenFolder::make_subfolder(const std::string& name) const {
  if (::mkdirat(descriptor_, name.c_str(), 0777) == 0) return flush();
  const int code = errno;
  require(code == EEXIST, "cannot create the folder '{}': {}", shown_folder(path_ / name),
          in_words(code));
}

bool OpenFolder::make_link(const std::string& name, const std::string& target) const {
  if (::symlinkat(target.c_str(), descriptor_, name.c_str()) == 0) {
    flush();
    return true;
  }
  const int code = errno;
  require(code == EEXIST, "cannot create the link '{}': {}", shown_folder(path_ / name),
          in_words(code));
  return false;
}

std::optional<std::string> OpenFolder::link_target(const std::string& name) const {
  std::string target(PATH_MAX, '\0');
  const ssize_t count = ::readlinkat(descriptor_, name.c_str(), target.data(), target.size());
  const int code = errno;
  if (count >= 0) return target.substr(0, static_cast<std::size_t>(count));
  if (code == EINVAL || code == ENOENT || code == ENOTDIR) return std::nullopt;
  fail("cannot look at '{}': {}", shown_folder(path_ / name), in_words(code));
}

OpenFolder OpenFolder::again() const {
  OpenFolder same;
  same.path_ = path_;
  same.descriptor_ = open_folder_at(descriptor_, ".", 0, same.readable_);
  const int code = errno;
  require(same.descriptor_ >= 0, "cannot open the folder '{}': {}", shown_folder(path_),
          in_words(code));
  return same;
}

std::optional<FileStatus> OpenFolder::status_of(const std::string& name) const {
  struct stat status = {};
  if (::fstatat(descriptor_, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0)
    return status_from(status);
  const int code = errno;
  if (code == ENOENT || code == ENOTDIR) return std::nullopt;
  fail("cannot look at '{}': {}", shown_folder(path_ / name), in_words(code));
}

std::vector<FolderEntry> OpenFolder::entries() const {
  // A descriptor of its own: reading moves its place.
  const int descriptor = ::openat(descriptor_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, CloseFolder> folder(descriptor < 0 ? nullptr
                                                                : ::fdopendir(descriptor));
  if (folder == nullptr) {
    const int code = errno;
    if (descriptor >= 0) ::close(descriptor);
    fail("cannot list '{}': {}", shown_folder(path_), in_words(code));
  }
  std::vector<FolderEntry> found;
  while (true) {
    errno = 0;  // readdir says nothing else that tells the end from a failure
    const struct dirent* const entry = ::readdir(folder.get());
    const int code = errno;
    require(entry != nullptr || code == 0, "cannot list '{}': {}", shown_folder(path_),
            in_words(code));
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (const std::optional<FileKind> kind = kind_of(entry->d_type)) {
      found.push_back({std::string(name), *kind});
    } else if (const std::optional<FileStatus> status = status_of(std::string(name))) {
      found.push_back({std::string(name), status->kind});
    }  // else removed since by another process
  }
  std::sort(found.begin(), found.end(),
            [](const FolderEntry& a, const FolderEntry& b) { return a.name < b.name; });
  return found;
}

void OpenFolder::flush() const {
  if (!readable_ || ::fsync(descriptor_) == 0) return;
  const int code = errno;
  if (code == EINVAL || code == ENOTSUP || code == ENOSYS) return;
  fail("cannot flush the folder '{}' to the disk: {}", shown_folder(path_), in_words(code));
}

}  // namespace filigree
