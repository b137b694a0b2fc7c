#include "base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/file_lock.h"
#include "base/output_folder.h"
#include "filigree/error.h"

namespace filigree {
namespace fs = std::filesystem;

namespace {

// What a process has open, under the names that the system gives it: a link there leads to the very
// thing that is meant, and replacing it would put a file into /dev.
bool names_what_is_open(const fs::path& path) {
  const std::string text = path.lexically_normal().string();
  return text.starts_with("/dev/std") || text.starts_with("/dev/fd/") || text.starts_with("/proc/");
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

}  // namespace

AtomicFile::AtomicFile(fs::path path) : path_(std::move(path)) {
  require(path_.has_filename(), "cannot write '{}': it names no file", path_.string());
  if (names_what_is_open(path_)) {
    open_directly();
    return;
  }
  // Named with the file, which is what the user wrote.
  const fs::path parent = path_.has_parent_path() ? path_.parent_path() : ".";
  if (!is_there(parent)) write_error("create", ENOENT);
  FolderToWrite place = folder_to_write(parent);
  const std::optional<FileStatus> there = place.folder.status_of(path_.filename());
  const FileKind kind = there ? there->kind : FileKind::kFile;
  if (kind == FileKind::kFolder) write_error("write", EISDIR);
  if (kind == FileKind::kOther) {
    require(!place.held,
            "cannot write '{}': it is a device or a pipe in an output folder; remove it, or choose "
            "another folder",
            path_.string());
    open_directly();
    return;
  }
  folder_ = std::move(place.folder);
  remove_left_behind();
  create_partial();
}

void AtomicFile::open_directly() {
  // Without O_NONBLOCK, opening a named pipe that nobody reads would wait for ever. At the end,
  // where it is a file that the shell opened for this process.
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) write_error("open", errno);
  ::fcntl(descriptor_, F_SETFL, O_WRONLY | O_APPEND);
}

// Partial files that nobody has locked belong to processes that were killed.
void AtomicFile::remove_left_behind() const {
  if (!folder_->readable()) return;  // it may be written, but not listed
  const std::string name = path_.filename();
  for (const FolderEntry& entry : folder_->entries()) {
    if (!is_partial_of(entry.name, name)) continue;
    const int descriptor = ::openat(folder_->descriptor(), entry.name.c_str(),
                                    O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor < 0) continue;
    if (try_to_lock(descriptor) == FileLocked::kByUs)
      ::unlinkat(folder_->descriptor(), entry.name.c_str(), 0);
    ::close(descriptor);
  }
}

void AtomicFile::create_partial() {
  // A crashed process with the same number may have left a partial file: take the next name.
  static std::atomic<unsigned> counter{0};
  constexpr int kMostAttempts = 1000;
  for (int attempt = 0;; ++attempt) {
    partial_ = fmt::format("{}.{}-{}.partial", path_.filename().string(), ::getpid(),
                           counter.fetch_add(1));
    // Told before it is there: a signal between the two would leave it behind.
    told_ = PartialName(folder_->descriptor(), partial_);
    descriptor_ = ::openat(folder_->descriptor(), partial_.c_str(),
                           O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0) {
      const int code = errno;
      told_.forget();
      if (code == EEXIST && attempt < kMostAttempts) continue;
      partial_.clear();
      write_error("create", code);
    }
    // Before it was locked another process may have taken it for one that was left behind.
    const bool ours = try_to_lock(descriptor_) != FileLocked::kByAnother;
    struct stat status = {};
    const int code = ::fstat(descriptor_, &status) == 0 ? 0 : errno;
    if (ours && code == 0 && status.st_nlink > 0) return;
    told_.forget();
    ::close(std::exchange(descriptor_, -1));
    if (code == 0) continue;
    ::unlinkat(folder_->descriptor(), partial_.c_str(), 0);
    partial_.clear();
    write_error("create", code);
  }
}

AtomicFile::~AtomicFile() {
  told_.forget();
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!partial_.empty()) ::unlinkat(folder_->descriptor(), partial_.c_str(), 0);
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
  if (!partial_.empty() && ::renameat(folder_->descriptor(), partial_.c_str(),
                                      folder_->descriptor(), path_.filename().c_str()) != 0)
    write_error("rename", errno);
  told_.forget();
  const bool renamed = !std::exchange(partial_, {}).empty();
  // What is on the disk cannot fail any more; to a device or a pipe the last bytes can.
  const int closed = ::close(std::exchange(descriptor_, -1));
  if (closed != 0 && !renamed) write_error("close", errno);
  // The rename itself is durable only once the folder is.
  if (renamed) folder_->flush();
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
