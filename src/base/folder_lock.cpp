#include "filigree/base/folder_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <string>
#include <system_error>

#include "filigree/base/error.h"
#include "filigree/base/file_lock.h"
#include "filigree/base/log.h"
#include "filigree/base/strings.h"

namespace filigree {
namespace {

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

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder) : file_(folder / "lock") {
  while (true) {
    // Through no link: whoever put one there does not choose what is written.
    descriptor_ =
        ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    const int opened = errno;
    require(descriptor_ >= 0, "cannot lock the folder '{}': {}", printable(folder.string(), 400),
            opened == ELOOP ? "its file 'lock' is a symbolic link"
                            : std::generic_category().message(opened));
    const FileLocked locked = try_to_lock(descriptor_);
    if (locked == FileLocked::kByAnother) {
      const std::string holder = holder_in(descriptor_);
      ::close(descriptor_);
      fail("'{}' is in use by {}; wait until it has ended, or choose another folder",
           printable(folder.string(), 400), holder);
    }
    if (locked == FileLocked::kNotPossible)
      warn("'{}' cannot be locked on this file system; run nothing else in it",
           printable(folder.string(), 400));
    // The one that held it may have removed the file between the two calls.
    struct stat by_name = {}, by_number = {};
    if (::lstat(file_.c_str(), &by_name) == 0 && ::fstat(descriptor_, &by_number) == 0 &&
        by_name.st_ino == by_number.st_ino && by_name.st_dev == by_number.st_dev)
      break;
    ::close(descriptor_);
  }
  // Who it is matters to people only: a full disk is found by what is to be kept.
  const std::string who = this_process();
  if (::ftruncate(descriptor_, 0) == 0) [[maybe_unused]]
    const ssize_t written = ::pwrite(descriptor_, who.data(), who.size(), 0);
}

FolderLock::~FolderLock() {
  ::unlink(file_.c_str());
  ::close(descriptor_);
}

}  // namespace filigree
