// The half of the preloaded library that sees what looks at files (shim.cpp has the rest, and says
// what the environment may ask for): stat and its kin, read, readdir, mmap. Opening is in shim.cpp.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/faults/shim.h"

namespace {

using filigree::faults::shim::below;
using filigree::faults::shim::is_watched;
using filigree::faults::shim::read_goes_wrong;

// On this system struct stat and struct stat64 are the same.
static_assert(sizeof(struct stat) == sizeof(struct stat64));

int view_prompt(int folder, const char* path, void* status, int flags) {
  char buffer[PATH_MAX];
  const bool counts = path[0] == '\0' ? is_watched(folder) : below(folder, path, buffer)[0] != '\0';
  if (counts && read_goes_wrong()) return -1;
  return static_cast<int>(syscall(SYS_newfstatat, folder, path, status, flags));
}

template <typename Entry>
Entry* next_entry(DIR* folder, const char* name) {
  using Call = Entry* (*)(DIR*);
  // Of both names, since one may be asked for before the other.
  static const auto call = reinterpret_cast<Call>(dlsym(RTLD_NEXT, name));
  if (is_watched(dirfd(folder)) && read_goes_wrong()) return nullptr;
  return call(folder);
}

void* map(void* address, size_t length, int protection, int flags, int descriptor, off_t offset) {
  if (is_watched(descriptor) && read_goes_wrong()) return MAP_FAILED;
  return reinterpret_cast<void*>(
      syscall(SYS_mmap, address, length, protection, flags, descriptor, offset));
}

}  // namespace

extern "C" {

int stat(const char* path, struct stat* status) { return view_prompt(AT_FDCWD, path, status, 0); }
int stat64(const char* path, struct stat64* status) {
  return view_prompt(AT_FDCWD, path, status, 0);
}
int lstat(const char* path, struct stat* status) {
  return view_prompt(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}
int lstat64(const char* path, struct stat64* status) {
  return view_prompt(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}
int fstatat(int folder, const char* path, struct stat* status, int flags) {
  return view_prompt(folder, path, status, flags);
}
int fstatat64(int folder, const char* path, struct stat64* status, int flags) {
  return view_prompt(folder, path, status, flags);
}
int fstat(int descriptor, struct stat* status) {
  return view_prompt(descriptor, "", status, AT_EMPTY_PATH);
}
int fstat64(int descriptor, struct stat64* status) {
  return view_prompt(descriptor, "", status, AT_EMPTY_PATH);
}
int access(const char* path, int mode) {
  char buffer[PATH_MAX];
  if (below(AT_FDCWD, path, buffer)[0] != '\0' && read_goes_wrong()) return -1;
  return static_cast<int>(syscall(SYS_faccessat, AT_FDCWD, path, mode));
}

ssize_t read(int descriptor, void* bytes, size_t count) {
  if (is_watched(descriptor) && read_goes_wrong()) return -1;
  return syscall(SYS_read, descriptor, bytes, count);
}
ssize_t pread(int descriptor, void* bytes, size_t count, off_t offset) {
  if (is_watched(descriptor) && read_goes_wrong()) return -1;
  return syscall(SYS_pread64, descriptor, bytes, count, offset);
}
ssize_t pread64(int descriptor, void* bytes, size_t count, off64_t offset) {
  if (is_watched(descriptor) && read_goes_wrong()) return -1;
  return syscall(SYS_pread64, descriptor, bytes, count, offset);
}

struct dirent* readdir(DIR* folder) {
  return next_entry<struct dirent>(folder, "readdir");
}
struct dirent64* readdir64(DIR* folder) {
  return next_entry<struct dirent64>(folder, "readdir64");
}

void* mmap(void* address, size_t length, int protection, int flags, int descriptor, off_t offset) {
  return map(address, length, protection, flags, descriptor, offset);
}
void* mmap64(void* address, size_t length, int protection, int flags, int descriptor,
             off64_t offset) {
  return map(address, length, protection, flags, descriptor, offset);
}

}  // extern "C"
