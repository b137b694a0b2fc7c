// A whole file mapped read-only into memory. Pages are read on first use, so opening a large
// checkpoint costs nothing until its tensors are touched.
//
// What another program does to the file in the meantime shows in the mapping, unless it replaces
// the file by renaming. Of files that are read over a long time one must therefore ask at the end
// whether they stayed as they were; and a page beyond the end of a file that was cut short is a
// SIGBUS, whose handler, if the program has one, can learn which file it was.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

namespace filigree {

enum class WhileMapped {
  kMayChange,      // read at once, or a log that grows
  kMustNotChange,  // require_unchanged_files() looks at it
};

class MappedFile {
 public:
  // Throws Error when the file is missing, unreadable or not a regular file, and LackOfMemory where
  // the system has none for it. An empty file maps to an empty span.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path,
                                                WhileMapped mapped = WhileMapped::kMayChange);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  const std::filesystem::path& path() const { return path_; }

  // Gives up the memory that reading a part of bytes() took; it is read again at its next use. For
  // files larger than memory that are passed through once.
  void release(std::span<const std::byte> part) const;

 private:
  MappedFile(std::filesystem::path path, const std::byte* data, std::size_t size);

  std::filesystem::path path_;
  const std::byte* data_;
  std::size_t size_;
};

// Throws Error, naming the file, when one that must not change was written to or cut short since it
// was mapped, also when it is no longer mapped, and when it cannot be looked at again. Each is told
// of once. Call it before a result is given away.
void require_unchanged_files();

// The name of the file that is mapped at an address, or null. May be called by a signal handler.
const char* mapped_file_at(const void* address) noexcept;

}  // namespace filigree
