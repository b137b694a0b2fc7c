#include "filigree/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include "filigree/base/error.h"

namespace filigree {

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const auto describe = [](int code) { return std::generic_category().message(code); };
  // Without O_NONBLOCK, opening a named pipe would wait for its writer, possibly for ever.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    const int code = errno;
    fail("cannot open '{}': {}", path.string(), describe(code));
  }
  struct stat status = {};
  const int status_code = ::fstat(descriptor, &status) == 0 ? 0 : errno;
  if (status_code != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    fail("cannot read '{}': {}", path.string(),
         status_code != 0 ? describe(status_code) : "not a regular file");
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  void* address = nullptr;
  int map_code = 0;
  if (size > 0) {
    address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (address == MAP_FAILED) map_code = errno;
  }
  ::close(descriptor);
  if (map_code != 0)
    fail("cannot map '{}' ({} bytes): {}", path.string(), size, describe(map_code));
  return std::shared_ptr<const MappedFile>(
      new MappedFile(path, static_cast<const std::byte*>(address), size));
}

MappedFile::MappedFile(std::filesystem::path path, const std::byte* data, std::size_t size)
    : path_(std::move(path)), data_(data), size_(size) {}

void MappedFile::release(std::span<const std::byte> part) const {
  const auto address = [](const std::byte* at) { return reinterpret_cast<std::uintptr_t>(at); };
  if (address(part.data()) < address(data_) ||
      address(part.data()) + part.size() > address(data_) + size_)
    return;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  // Only whole pages: others may hold what is still in use.
  const auto begin = static_cast<std::size_t>(part.data() - data_);
  const std::size_t first = (begin + page - 1) / page * page;
  const std::size_t last = (begin + part.size()) / page * page;
  if (first >= last) return;
  ::madvise(const_cast<std::byte*>(data_ + first), last - first, MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  if (size_ > 0) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace filigree
