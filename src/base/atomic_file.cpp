#include "filigree/base/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

#include "filigree/base/error.h"

namespace filigree {
namespace fs = std::filesystem;

namespace {

// The file that `path` names after following symbolic links; it need not exist.
fs::path follow_links(fs::path path) {
  constexpr int kMostLinks = 40;  // as the kernel
  for (int i = 0; i < kMostLinks; ++i) {
    std::error_code error;
    if (!fs::is_symlink(fs::symlink_status(path, error))) return path;
    const fs::path next = fs::read_symlink(path, error);
    if (error) return path;
    path = path.parent_path() / next;  // an absolute `next` replaces the left side
  }
  return path;
}

}  // namespace

AtomicFile::AtomicFile(fs::path path) : path_(std::move(path)) {
  require(path_.has_filename(), "cannot write '{}': it names no file", path_.string());
  std::error_code ignored;
  const fs::file_type type = fs::status(path_, ignored).type();
  if (type == fs::file_type::directory) write_error("write", EISDIR);
  if (type == fs::file_type::character || type == fs::file_type::fifo ||
      type == fs::file_type::block || type == fs::file_type::socket) {
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) write_error("open", errno);
    return;
  }
  target_ = follow_links(path_);
  // A crashed process with the same number may have left a partial file: take the next name.
  static std::atomic<unsigned> counter{0};
  constexpr int kMostAttempts = 1000;
  for (int attempt = 0; descriptor_ < 0; ++attempt) {
    partial_ = target_;
    partial_ += fmt::format(".{}-{}.partial", ::getpid(), counter.fetch_add(1));
    descriptor_ = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && (errno != EEXIST || attempt == kMostAttempts))
      write_error("create", errno);
  }
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!partial_.empty()) ::unlink(partial_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      write_error("write", errno);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void AtomicFile::commit() {
  require(!failed_ && descriptor_ >= 0, "cannot commit '{}': {}", path_.string(),
          failed_ ? "an earlier write failed" : "already committed");
  // Devices and pipes cannot be flushed to a disk; they say EINVAL.
  if (::fsync(descriptor_) != 0 && !partial_.empty()) write_error("flush", errno);
  const int closed = ::close(std::exchange(descriptor_, -1));
  if (closed != 0) write_error("close", errno);
  if (partial_.empty()) return;
  if (::rename(partial_.c_str(), target_.c_str()) != 0) write_error("rename", errno);
  partial_.clear();
  // The rename itself is durable only once the folder is; failing to open it is not an error,
  // since some file systems do not allow it.
  const fs::path folder = target_.has_parent_path() ? target_.parent_path() : ".";
  const int folder_descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_descriptor >= 0) {
    ::fsync(folder_descriptor);
    ::close(folder_descriptor);
  }
}

void AtomicFile::write_error(const char* what, int code) {
  failed_ = true;
  fail("cannot {} '{}': {}", what, path_.string(), std::generic_category().message(code));
}

void write_file_atomically(const fs::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace filigree
