// A whole file mapped read-only into memory. Pages are read on first use, so opening a large
// checkpoint costs nothing until its tensors are touched.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

namespace filigree {

class MappedFile {
 public:
  // Throws Error when the file is missing, unreadable or not a regular file. An empty file maps to
  // an empty span.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);

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

}  // namespace filigree
