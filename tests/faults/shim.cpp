// Loaded before everything else (LD_PRELOAD), this library sees what a program does to files below
// one folder, and makes exactly one of these operations go wrong, or writes all of them down. What
// only looks at files is counted apart, and may go wrong once or from then on (shim_reads.cpp).
//
//   FAULTS_UNDER    the folder; what is done elsewhere is not counted
//   FAULTS_AT       number of the operation, from 1; 0: none
//   FAULTS_KIND     kill (before it), torn (half of a write, then kill), short (half of a write),
//                   enospc, eio, eacces (it fails), memory (FAULTS_AT counts allocations, from the
//                   first look at a file below the folder on), read (FAULTS_AT counts looks: stat,
//                   opening to read, read, readdir, mmap; that one fails with EIO), reads (that one
//                   and all later ones)
//   FAULTS_COUNT    file that gets the number of operations at the end
//   FAULTS_TRACE    file that gets the operations themselves, for power_cut.h
//
// Operations are those that change something: opening for writing, write, fsync, rename, unlink,
// mkdir, rmdir, ftruncate, link. Plain C inside: it runs within malloc and before main.
#include "tests/faults/shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "tests/faults/failing_memory.h"

namespace {

enum class Fault { kNone, kKill, kTorn, kShort, kFail, kMemory, kRead, kReads };

struct Settings {
  char under[PATH_MAX] = "";
  long at = 0;
  Fault fault = Fault::kNone;
  int code = 0;
  int trace = -1;
  const char* count_file = nullptr;
};

constexpr int kMostDescriptors = 4096;
std::atomic<bool> watched[kMostDescriptors];
std::atomic<long> operations{0}, looks{0};

const Settings& settings() {
  static const Settings all = [] {
    Settings s;
    if (const char* under = getenv("FAULTS_UNDER"); under != nullptr)
      if (realpath(under, s.under) == nullptr) s.under[0] = '\0';
    if (const char* at = getenv("FAULTS_AT"); at != nullptr) s.at = atol(at);
    const char* kind = getenv("FAULTS_KIND");
    if (kind == nullptr) kind = "";
    if (strcmp(kind, "kill") == 0) s.fault = Fault::kKill;
    if (strcmp(kind, "torn") == 0) s.fault = Fault::kTorn;
    if (strcmp(kind, "short") == 0) s.fault = Fault::kShort;
    if (strcmp(kind, "memory") == 0) s.fault = Fault::kMemory;
    if (strcmp(kind, "read") == 0) s.fault = Fault::kRead;
    if (strcmp(kind, "reads") == 0) s.fault = Fault::kReads;
    if (strcmp(kind, "enospc") == 0) s.fault = Fault::kFail, s.code = ENOSPC;
    if (strcmp(kind, "eio") == 0) s.fault = Fault::kFail, s.code = EIO;
    if (strcmp(kind, "eacces") == 0) s.fault = Fault::kFail, s.code = EACCES;
    s.count_file = getenv("FAULTS_COUNT");
    if (const char* trace = getenv("FAULTS_TRACE"); trace != nullptr)
      s.trace = static_cast<int>(
          syscall(SYS_openat, AT_FDCWD, trace, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    return s;
  }();
  return all;
}

}  // namespace

namespace filigree::faults::shim {

const char* below(int folder, const char* path, char* whole) {
  const char* under = settings().under;
  if (under[0] == '\0' || path == nullptr) return "";
  char start[PATH_MAX] = "";
  if (path[0] != '/') {
    if (folder == AT_FDCWD) {
      if (getcwd(start, sizeof(start)) == nullptr) return "";
    } else {
      char link[64];
      snprintf(link, sizeof(link), "/proc/self/fd/%d", folder);
      const ssize_t length = readlink(link, start, sizeof(start) - 1);
      if (length <= 0) return "";
      start[length] = '\0';
    }
    strncat(start, "/", sizeof(start) - strlen(start) - 1);
  }
  if (snprintf(whole, PATH_MAX, "%s%s", start, path) >= PATH_MAX) return "";
  char* write = whole;  // "//" and "/./" say nothing
  for (char* read = whole; *read != '\0';) {
    if (read[0] == '/' && read[1] == '/')
      ++read;
    else if (read[0] == '/' && read[1] == '.' && (read[2] == '/' || read[2] == '\0'))
      read += 2;
    else
      *write++ = *read++;
  }
  *write = '\0';
  if (write > whole + 1 && write[-1] == '/') write[-1] = '\0';
  const size_t length = strlen(under);
  return strncmp(whole, under, length) == 0 && (whole[length] == '/' || whole[length] == '\0')
             ? whole
             : "";
}

bool is_watched(int descriptor) {
  return descriptor >= 0 && descriptor < kMostDescriptors && watched[descriptor];
}

bool read_goes_wrong() {
  const Settings& s = settings();
  if (s.fault != Fault::kRead && s.fault != Fault::kReads) return false;
  const long look = ++looks;
  if (s.at == 0 || look < s.at || (s.fault == Fault::kRead && look > s.at)) return false;
  errno = EIO;
  return true;
}

}  // namespace filigree::faults::shim

namespace {

using filigree::faults::shim::below;
using filigree::faults::shim::is_watched;
using filigree::faults::shim::read_goes_wrong;

void put(const void* bytes, size_t count) {
  const char* at = static_cast<const char*>(bytes);
  while (count > 0) {
    const long written = syscall(SYS_write, settings().trace, at, count);
    if (written <= 0) return;
    at += written;
    count -= static_cast<size_t>(written);
  }
}

// "OPERATION number number path path", each text with its length, then the bytes of a write.
void record(char operation, long a, long b, const char* path = "", const char* other = "",
            const void* bytes = nullptr) {
  if (settings().trace < 0) return;
  char line[128];
  put(line, static_cast<size_t>(snprintf(line, sizeof(line), "%c %ld %ld %zu %zu\n", operation, a,
                                         b, strlen(path), strlen(other))));
  put(path, strlen(path));
  put(other, strlen(other));
  if (bytes != nullptr) put(bytes, static_cast<size_t>(b));
}

[[noreturn]] void die() {
  syscall(SYS_kill, getpid(), SIGKILL);
  while (true) pause();
}

// A file below the folder was looked at: from here on memory may be missing.
void start() {
  if (settings().fault == Fault::kMemory) filigree::faults::count_allocations(settings().at);
}

// Counts an operation; true when it is to fail, with errno set. Does not return for a kill.
bool goes_wrong() {
  start();
  const Settings& s = settings();
  if (++operations != s.at) return false;
  if (s.fault == Fault::kKill) die();
  if (s.fault != Fault::kFail) return false;
  errno = s.code;
  return true;
}

int note_open(int descriptor, const char* whole, int flags) {
  if (descriptor < 0 || descriptor >= kMostDescriptors) return descriptor;
  watched[descriptor] = whole[0] != '\0';
  if (whole[0] != '\0') start();
  if (whole[0] != '\0') record('O', descriptor, flags, whole);
  return descriptor;
}

int open_any(int folder, const char* path, int flags, mode_t mode) {
  char buffer[PATH_MAX];
  const char* whole = below(folder, path, buffer);
  const bool writes = (flags & (O_CREAT | O_WRONLY | O_RDWR | O_TRUNC)) != 0;
  if (whole[0] != '\0' && (writes ? goes_wrong() : read_goes_wrong())) return -1;
  return note_open(static_cast<int>(syscall(SYS_openat, folder, path, flags, mode)), whole, flags);
}

mode_t mode_of(int flags, va_list list) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? static_cast<mode_t>(va_arg(list, int)) : 0;
}

// Half of it where that is what goes wrong.
ssize_t write_some(int descriptor, const void* bytes, size_t count, long offset) {
  const auto call = [&](size_t length) {
    return offset < 0 ? syscall(SYS_write, descriptor, bytes, length)
                      : syscall(SYS_pwrite64, descriptor, bytes, length, offset);
  };
  if (is_watched(descriptor)) {
    const Settings& s = settings();
    if (goes_wrong()) return -1;
    const bool here = operations == s.at && count > 1;
    if (here && (s.fault == Fault::kTorn || s.fault == Fault::kShort)) count /= 2;
    const long written = call(count);
    if (written > 0)
      record(offset < 0 ? 'W' : 'P', descriptor * 1000000L + (offset < 0 ? 0 : offset), written, "",
             "", bytes);
    if (operations == s.at && s.fault == Fault::kTorn) die();
    return written;
  }
  return call(count);
}

int rename_any(int from_folder, const char* from, int to_folder, const char* to) {
  char first[PATH_MAX], second[PATH_MAX];
  const char* whole = below(from_folder, from, first);
  const char* target = below(to_folder, to, second);
  if (target[0] != '\0' && goes_wrong()) return -1;
  const int result = static_cast<int>(syscall(SYS_renameat2, from_folder, from, to_folder, to, 0));
  if (result == 0 && target[0] != '\0') record('R', 0, 0, whole, target);
  return result;
}

int unlink_any(int folder, const char* path, int flags) {
  char buffer[PATH_MAX];
  const char* whole = below(folder, path, buffer);
  if (whole[0] != '\0' && goes_wrong()) return -1;
  const int result = static_cast<int>(syscall(SYS_unlinkat, folder, path, flags));
  if (result == 0 && whole[0] != '\0') record('U', 0, 0, whole);
  return result;
}

int make_folder(int folder, const char* path, mode_t mode) {
  char buffer[PATH_MAX];
  const char* whole = below(folder, path, buffer);
  if (whole[0] != '\0' && goes_wrong()) return -1;
  const int result = static_cast<int>(syscall(SYS_mkdirat, folder, path, mode));
  if (result == 0 && whole[0] != '\0') record('M', 0, 0, whole);
  return result;
}

int flush(int descriptor, long number) {
  if (!is_watched(descriptor)) return static_cast<int>(syscall(number, descriptor));
  if (goes_wrong()) return -1;
  record('S', descriptor, 0);
  return 0;  // nothing here outlives the machine, and a disk would take its time
}

__attribute__((destructor)) void tell_count() {
  const Settings& s = settings();
  if (s.count_file == nullptr) return;
  char line[64];
  const bool reads = s.fault == Fault::kRead || s.fault == Fault::kReads;
  const long number = s.fault == Fault::kMemory ? filigree::faults::counted_allocations()
                      : reads                   ? looks.load()
                                                : operations.load();
  const int length = snprintf(line, sizeof(line), "%ld\n", number);
  const long file = syscall(SYS_openat, AT_FDCWD, s.count_file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  syscall(SYS_write, file, line, length);
  syscall(SYS_close, file);
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  return open_any(AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  return open_any(AT_FDCWD, path, flags, mode);
}
int openat(int folder, const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  return open_any(folder, path, flags, mode);
}
int openat64(int folder, const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = mode_of(flags, list);
  va_end(list);
  return open_any(folder, path, flags, mode);
}
int close(int descriptor) {
  if (is_watched(descriptor)) {
    watched[descriptor] = false;
    record('C', descriptor, 0);
  }
  return static_cast<int>(syscall(SYS_close, descriptor));
}
ssize_t write(int descriptor, const void* bytes, size_t count) {
  return write_some(descriptor, bytes, count, -1);
}
ssize_t pwrite(int descriptor, const void* bytes, size_t count, off_t offset) {
  return write_some(descriptor, bytes, count, offset);
}
ssize_t pwrite64(int descriptor, const void* bytes, size_t count, off_t offset) {
  return write_some(descriptor, bytes, count, offset);
}
int fsync(int descriptor) { return flush(descriptor, SYS_fsync); }
int fdatasync(int descriptor) { return flush(descriptor, SYS_fdatasync); }
int ftruncate(int descriptor, off_t length) {
  if (is_watched(descriptor) && goes_wrong()) return -1;
  const int result = static_cast<int>(syscall(SYS_ftruncate, descriptor, length));
  if (result == 0 && is_watched(descriptor)) record('T', descriptor, length);
  return result;
}
int ftruncate64(int descriptor, off_t length) { return ftruncate(descriptor, length); }
int rename(const char* from, const char* to) { return rename_any(AT_FDCWD, from, AT_FDCWD, to); }
int renameat(int from_folder, const char* from, int to_folder, const char* to) {
  return rename_any(from_folder, from, to_folder, to);
}
int unlink(const char* path) { return unlink_any(AT_FDCWD, path, 0); }
int unlinkat(int folder, const char* path, int flags) { return unlink_any(folder, path, flags); }
int rmdir(const char* path) { return unlink_any(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char* path) {
  const int result = unlink_any(AT_FDCWD, path, 0);
  return result == 0 || errno != EISDIR ? result : unlink_any(AT_FDCWD, path, AT_REMOVEDIR);
}
int mkdir(const char* path, mode_t mode) { return make_folder(AT_FDCWD, path, mode); }
int mkdirat(int folder, const char* path, mode_t mode) { return make_folder(folder, path, mode); }
int link(const char* from, const char* to) {
  char buffer[PATH_MAX];
  if (below(AT_FDCWD, to, buffer)[0] != '\0' && goes_wrong()) return -1;
  return static_cast<int>(syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0));
}

}  // extern "C"
