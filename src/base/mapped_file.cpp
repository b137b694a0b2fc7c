#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/lack_of_memory.h"
#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree {
namespace {

// What a signal handler may look at: no locks, no memory that comes and goes. Files beyond the
// number of places stay nameless.
struct MappedPlace {
  std::atomic<bool> taken = false;
  std::atomic<const std::byte*> begin = nullptr;  // set last
  std::atomic<std::size_t> size = 0;
  std::atomic<const char*> name = nullptr;
};
std::array<MappedPlace, 4096> mapped_places;

void add_place(const std::byte* begin, std::size_t size, const char* name) {
  for (MappedPlace& place : mapped_places) {
    if (place.taken.load(std::memory_order_relaxed) || place.taken.exchange(true)) continue;
    place.size = size;
    place.name = name;
    place.begin = begin;
    return;
  }
}

void remove_place(const std::byte* begin) {
  for (MappedPlace& place : mapped_places) {
    if (place.begin != begin) continue;
    place.begin = nullptr;
    place.taken = false;
    return;
  }
}

// What there is to say against a file that was read; "" for nothing, for which it takes no memory.
std::string objection_to(const std::filesystem::path& path, const struct stat& before) {
  struct stat now = {};
  if (::stat(path.c_str(), &now) != 0) {
    const int code = errno;
    // Removed: the mapped one is as it was.
    if (code == ENOENT || code == ENOTDIR) return "";
    return fmt::format(
        "'{}' cannot be looked at again, to see whether it stayed as it was while it was read: {}",
        printable(path.string(), 400), std::generic_category().message(code));
  }
  // A file of the same name that is another one replaced it, and the mapped one is as it was.
  if (now.st_dev != before.st_dev || now.st_ino != before.st_ino) return "";
  if (now.st_size == before.st_size && now.st_mtim.tv_sec == before.st_mtim.tv_sec &&
      now.st_mtim.tv_nsec == before.st_mtim.tv_nsec)
    return "";
  return fmt::format(
      "'{}' was written to while it was read, so that what was computed from it is of no file; "
      "run the command again when the file stays as it is",
      printable(path.string(), 400));
}

// The files that must not change, and those that have.
class Watched {
 public:
  void add(const MappedFile* file, const struct stat& as_mapped) {
    const std::lock_guard lock(mutex_);
    files_.emplace(file, as_mapped);
  }
  void remove(const MappedFile* file) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = files_.find(file);
    if (found == files_.end()) return;
    try {
      if (std::string objection = objection_to(file->path(), found->second); !objection.empty())
        objections_.push_back(std::move(objection));
    } catch (const std::bad_alloc&) {
      wordless_ = true;
    }
    files_.erase(found);
  }
  // "" where all is as it was.
  std::string take_objection() {
    const std::lock_guard lock(mutex_);
    for (auto file = files_.begin(); file != files_.end();) {
      std::string objection = objection_to(file->first->path(), file->second);
      const bool changed = !objection.empty();
      if (changed) objections_.push_back(std::move(objection));
      file = changed ? files_.erase(file) : std::next(file);
    }
    if (std::exchange(wordless_, false))
      objections_.emplace_back("a file was written to while it was read; run the command again");
    if (objections_.empty()) return "";
    std::string first = std::move(objections_.front());
    objections_.clear();
    return first;
  }

 private:
  std::mutex mutex_;
  std::map<const MappedFile*, struct stat> files_;
  std::vector<std::string> objections_;
  bool wordless_ = false;  // one more, for whose words there was no memory
};

// Never destroyed: files may be, when the process ends, after it would have been. Made without
// asking for memory: a destructor may be the first to come here.
Watched& watched() {
  alignas(Watched) static std::byte place[sizeof(Watched)];
  static Watched* const all = new (place) Watched;
  return *all;
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path,
                                                   WhileMapped mapped) {
  const auto describe = [](int code) { return std::generic_category().message(code); };
  // Without O_NONBLOCK, opening a named pipe would wait for its writer, possibly for ever.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    const int code = errno;
    if (code == ENOMEM)
      throw LackOfMemory(fmt::format("cannot open '{}'", printable(path.string(), 400)));
    fail("cannot open '{}': {}", printable(path.string(), 400), describe(code));
  }
  struct stat status = {};
  const int status_code = ::fstat(descriptor, &status) == 0 ? 0 : errno;
  if (status_code != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    fail("cannot read '{}': {}", printable(path.string(), 400),
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
  if (map_code == ENOMEM)
    throw LackOfMemory(
        fmt::format("cannot map '{}' ({} bytes)", printable(path.string(), 400), size));
  if (map_code != 0)
    fail("cannot map '{}' ({} bytes): {}", printable(path.string(), 400), size, describe(map_code));
  std::shared_ptr<const MappedFile> file(
      new MappedFile(path, static_cast<const std::byte*>(address), size));
  if (mapped == WhileMapped::kMustNotChange) watched().add(file.get(), status);
  return file;
}

MappedFile::MappedFile(std::filesystem::path path, const std::byte* data, std::size_t size)
    : path_(std::move(path)), data_(data), size_(size) {
  if (size_ > 0) add_place(data_, size_, path_.c_str());
}

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
  watched().remove(this);
  if (size_ == 0) return;
  remove_place(data_);
  ::munmap(const_cast<std::byte*>(data_), size_);
}

void require_unchanged_files() {
  const std::string objection = watched().take_objection();
  require(objection.empty(), "{}", objection);
}

const char* mapped_file_at(const void* address) noexcept {
  const auto* wanted = static_cast<const std::byte*>(address);
  for (const MappedPlace& place : mapped_places) {
    const std::byte* begin = place.begin;
    if (begin != nullptr && wanted >= begin && wanted < begin + place.size) return place.name;
  }
  return nullptr;
}

}  // namespace filigree
