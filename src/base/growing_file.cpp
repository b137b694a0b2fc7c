#include "base/growing_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree {

GrowingFile::GrowingFile(const OpenFolder& folder, std::string name)
    : folder_(folder), name_(std::move(name)) {
  descriptor_ = ::openat(folder_.descriptor(), name_.c_str(),
                         O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
  if (descriptor_ < 0) failed("open", errno);
  struct stat status = {};
  int code = ::fstat(descriptor_, &status) == 0 ? 0 : errno;
  if (code == 0 && !S_ISREG(status.st_mode)) code = EINVAL;
  if (code != 0) {
    ::close(std::exchange(descriptor_, -1));
    failed("open", code);
  }
  bytes_ = static_cast<std::uint64_t>(status.st_size);
}

GrowingFile::~GrowingFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void GrowingFile::read(std::uint64_t offset, std::span<char> bytes) const {
  while (!bytes.empty()) {
    const ssize_t count =
        ::pread(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) failed("read", errno);
    if (count == 0) fail("cannot read '{}': it became shorter", printable(name_, 400));
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
}

void GrowingFile::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count =
        ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(bytes_));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) failed("write", errno);
    bytes.remove_prefix(static_cast<std::size_t>(count));
    bytes_ += static_cast<std::uint64_t>(count);
  }
}

void GrowingFile::restart() {
  if (::ftruncate(descriptor_, 0) != 0) failed("empty", errno);
  bytes_ = 0;
}

void GrowingFile::commit_as(const std::string& name) {
  if (::fsync(descriptor_) != 0) failed("flush", errno);
  if (::renameat(folder_.descriptor(), name_.c_str(), folder_.descriptor(), name.c_str()) != 0)
    failed("rename", errno);
  ::close(std::exchange(descriptor_, -1));
  folder_.flush();
}

void GrowingFile::remove() {
  if (::unlinkat(folder_.descriptor(), name_.c_str(), 0) != 0) failed("remove", errno);
}

void GrowingFile::failed(const char* what, int code) const {
  fail("cannot {} '{}': {}", what, printable((folder_.path() / name_).string(), 400),
       code == ELOOP ? "it is a symbolic link" : std::generic_category().message(code));
}

std::uint64_t free_bytes(const OpenFolder& folder) {
  struct statvfs status = {};
  if (::fstatvfs(folder.descriptor(), &status) != 0)
    return std::numeric_limits<std::uint64_t>::max();  // then a write says it
  return static_cast<std::uint64_t>(status.f_bavail) * status.f_frsize;
}

}  // namespace filigree
