#include "filigree/base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

#include "filigree/base/error.h"
#include "filigree/base/file_lock.h"
#include "filigree/base/folders.h"

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

// Whether `name` is ".<pid>-<n>.partial" behind the name of the target.
bool is_partial_of(std::string_view name, std::string_view target) {
  constexpr std::string_view kEnd = ".partial";
  if (!name.starts_with(target) || !name.ends_with(kEnd)) return false;
  name.remove_prefix(target.size());
  if (name.size() <= kEnd.size() || name[0] != '.') return false;
  name = name.substr(1, name.size() - 1 - kEnd.size());
  const std::size_t dash = name.find('-');
  const auto is_number = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  return dash != std::string_view::npos && is_number(name.substr(0, dash)) &&
         is_number(name.substr(dash + 1));
}

// Partial files that nobody has locked belong to processes that were killed. Best effort: a folder
// that cannot be listed is no obstacle to writing into it.
void remove_left_behind(const fs::path& target) {
  std::error_code ignored;
  const fs::path folder = target.has_parent_path() ? target.parent_path() : ".";
  const std::string name = target.filename().string();
  fs::directory_iterator entry(folder, ignored);
  for (; entry != fs::directory_iterator() && !ignored; entry.increment(ignored)) {
    const fs::path& path = entry->path();
    if (!is_partial_of(path.filename().string(), name)) continue;
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor < 0) continue;
    if (try_to_lock(descriptor) == FileLocked::kByUs) ::unlink(path.c_str());
    ::close(descriptor);
  }
}

}  // namespace

AtomicFile::AtomicFile(fs::path path) : path_(std::move(path)) {
  require(path_.has_filename(), "cannot write '{}': it names no file", path_.string());
  std::error_code ignored;
  const fs::file_type type = fs::status(path_, ignored).type();
  if (type == fs::file_type::directory) write_error("write", EISDIR);
  if (type == fs::file_type::character || type == fs::file_type::fifo ||
      type == fs::file_type::block || type == fs::file_type::socket) {
    // Without O_NONBLOCK, opening a named pipe that nobody reads would wait for ever.
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor_ < 0) write_error("open", errno);
    ::fcntl(descriptor_, F_SETFL, O_WRONLY);
    return;
  }
  target_ = follow_links(path_);
  remove_left_behind(target_);
  create_partial();
}

void AtomicFile::create_partial() {
  // A crashed process with the same number may have left a partial file: take the next name.
  static std::atomic<unsigned> counter{0};
  constexpr int kMostAttempts = 1000;
  for (int attempt = 0;; ++attempt) {
    partial_ = target_;
    partial_ += fmt::format(".{}-{}.partial", ::getpid(), counter.fetch_add(1));
    descriptor_ = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0) {
      const int code = errno;
      if (code == EEXIST && attempt < kMostAttempts) continue;
      partial_.clear();
      write_error("create", code);
    }
    // Before it was locked another process may have taken it for one that was left behind.
    struct stat status = {};
    if (try_to_lock(descriptor_) != FileLocked::kByAnother && ::fstat(descriptor_, &status) == 0 &&
        status.st_nlink > 0)
      return;
    ::close(std::exchange(descriptor_, -1));
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
  // Renamed while it is open and so locked: nobody may take it for one that was left behind.
  if (!partial_.empty() && ::rename(partial_.c_str(), target_.c_str()) != 0)
    write_error("rename", errno);
  const bool renamed = !std::exchange(partial_, {}).empty();
  // What is on the disk cannot fail any more; to a device or a pipe the last bytes can.
  const int closed = ::close(std::exchange(descriptor_, -1));
  if (closed != 0 && !renamed) write_error("close", errno);
  // The rename itself is durable only once the folder is.
  if (renamed) flush_folder(target_.parent_path());
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
