#include "base/output_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <mutex>
#include <string>
#include <system_error>
#include <vector>

#include "base/file_lock.h"
#include "base/folders.h"
#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLockFile = "lock";

// "out/./a/" and "/work/out/a" are the same; ".." stays, as only the system knows where it leads.
std::vector<std::string> parts_of(const fs::path& path) {
  std::error_code without;  // of a working folder that was removed the path is all there is
  const fs::path whole = fs::absolute(path, without);
  std::vector<std::string> parts;
  for (const fs::path& part : without ? path : whole)
    if (!part.empty() && part != ".") parts.push_back(part.string());
  return parts;
}

// The folders that this process holds, so that paths below them lead through their descriptors.
class HeldFolders {
 public:
  void add(const fs::path& path, const OpenFolder& folder) {
    const std::lock_guard lock(mutex_);
    held_.push_back({parts_of(path), &folder});
  }
  void remove(const OpenFolder& folder) {
    const std::lock_guard lock(mutex_);
    std::erase_if(held_, [&](const Held& held) { return held.folder == &folder; });
  }

  // Nothing when the path lies in none of them.
  std::optional<OpenFolder> open(const fs::path& path, MissingFolders missing) {
    const std::vector<std::string> parts = parts_of(path);
    const std::lock_guard lock(mutex_);
    const Held* nearest = nullptr;
    for (const Held& held : held_)
      if (lies_in(parts, held) && (!nearest || held.parts.size() > nearest->parts.size()))
        nearest = &held;
    if (nearest == nullptr) return std::nullopt;
    OpenFolder at = nearest->folder->again();
    for (std::size_t i = nearest->parts.size(); i < parts.size(); ++i) {
      if (missing == MissingFolders::kMake) at.make_subfolder(parts[i]);
      at = at.subfolder(parts[i]);
    }
    return at;
  }

 private:
  struct Held {
    std::vector<std::string> parts;
    const OpenFolder* folder;
  };

  static bool lies_in(const std::vector<std::string>& parts, const Held& held) {
    const std::size_t depth = held.parts.size();
    return parts.size() >= depth &&
           std::equal(held.parts.begin(), held.parts.end(), parts.begin()) &&
           std::find(parts.begin() + static_cast<std::ptrdiff_t>(depth), parts.end(), "..") ==
               parts.end();
  }

  std::mutex mutex_;
  std::vector<Held> held_;
};

HeldFolders& held_folders() {
  static HeldFolders all;
  return all;
}

// Those that a user named: links are followed.
void make_named_folders(const fs::path& folder) {
  if (is_folder(folder)) return;
  // "a/b/" has an empty last part, and "a" an empty parent.
  const fs::path named = folder.has_filename() ? folder : folder.parent_path();
  const fs::path parent = named.parent_path();
  if (!parent.empty() && parent != named) make_named_folders(parent);
  if (::mkdir(named.c_str(), 0777) == 0) return flush_folder(parent);
  const int code = errno;
  if (code == EEXIST && is_folder(named)) return;  // another process was first
  fail("cannot create the folder '{}': {}", printable(named.string(), 400),
       code == EEXIST ? "a file of that name exists" : std::generic_category().message(code));
}

std::string this_process() {
  std::array<char, 256> host = {};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts = {};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> since = {};
  std::strftime(since.data(), since.size(), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return fmt::format("process {} on {}, since {}\n", ::getpid(),
                     host[0] == '\0' ? "this machine" : host.data(), since.data());
}

std::string holder_in(int descriptor) {
  std::array<char, 400> text;
  const ssize_t count = ::pread(descriptor, text.data(), text.size(), 0);
  std::string_view line(text.data(), static_cast<std::size_t>(count > 0 ? count : 0));
  line = line.substr(0, line.find('\n'));
  return line.empty() ? "another process" : printable(line, 300);
}

// 0 where the file that is open is the one of that name, ENOENT where it is not, else what went
// wrong.
int is_lock_in(const OpenFolder& folder, int descriptor) {
  struct stat by_name = {}, by_number = {};
  if (::fstatat(folder.descriptor(), kLockFile, &by_name, AT_SYMLINK_NOFOLLOW) != 0 ||
      ::fstat(descriptor, &by_number) != 0)
    return errno;
  return by_name.st_ino == by_number.st_ino && by_name.st_dev == by_number.st_dev ? 0 : ENOENT;
}

}  // namespace

OutputFolder::OutputFolder(fs::path path, Users users) : path_(std::move(path)) {
  require(!path_.empty(), "the name of the folder to write is empty");
  do {
    made_ = made_ || !is_there(path_);
    folder_.emplace(folder_to_write(path_, MissingFolders::kMake).folder);
  } while (users == Users::kOne && !try_lock());
  held_folders().add(path_, *folder_);
}

bool OutputFolder::try_lock() {
  const std::string shown = printable(path_.string(), 400);
  while (true) {
    // Through no link: whoever put one there does not choose what is written.
    lock_ = ::openat(folder_->descriptor(), kLockFile,
                     O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    const int opened = errno;
    if (lock_ < 0 && opened == ENOENT) return false;  // removed by another process, as empty
    require(lock_ >= 0, "cannot lock the folder '{}': {}", shown,
            opened == ELOOP ? "its file 'lock' is a symbolic link"
                            : std::generic_category().message(opened));
    const FileLocked locked = try_to_lock(lock_);
    if (locked == FileLocked::kByAnother) {
      const std::string holder = holder_in(lock_);
      ::close(lock_);
      fail("'{}' is in use by {}; wait until it has ended, or choose another folder", shown,
           holder);
    }
    if (locked == FileLocked::kNotPossible)
      warn("'{}' cannot be locked on this file system; run nothing else in it", shown);
    // The one that held it may have removed the file between the two calls.
    const int code = is_lock_in(*folder_, lock_);
    if (code == 0) break;
    ::close(lock_);
    require(code == ENOENT, "cannot lock the folder '{}': {}", shown,
            std::generic_category().message(code));
  }
  // Who it is matters to people only: a full disk is found by what is to be kept.
  const std::string who = this_process();
  if (::ftruncate(lock_, 0) == 0) [[maybe_unused]]
    const ssize_t written = ::pwrite(lock_, who.data(), who.size(), 0);
  return true;
}

OutputFolder::~OutputFolder() {
  held_folders().remove(*folder_);
  if (lock_ >= 0) {
    ::unlinkat(folder_->descriptor(), kLockFile, 0);
    ::close(lock_);
  }
  if (!made_) return;
  try {
    if (folder_->entries().empty()) ::rmdir(path_.c_str());
  } catch (const std::exception&) {
    // An empty folder does no harm.
  }
}

FolderToWrite folder_to_write(const fs::path& folder, MissingFolders missing) {
  if (std::optional<OpenFolder> held = held_folders().open(folder, missing))
    return {std::move(*held), true};
  if (missing == MissingFolders::kMake) make_named_folders(folder);
  return {OpenFolder(folder), false};
}

}  // namespace filigree
