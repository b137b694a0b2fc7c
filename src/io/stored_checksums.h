// The checksums of a folder's checksums.json at work: a file is compared as far as it is read.
// docs/file_formats.md describes checksums.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "base/mapped_file.h"
#include "io/byte_check.h"

namespace filigree {

enum class ChecksumGrain {
  kFiles,   // files that are read whole
  kBlocks,  // and their blocks, of files that are read in parts
};

// What checksums.json says of a file.
struct FileChecksum {
  std::uint64_t bytes = 0;
  std::string xxh64;              // of the whole file, 16 hexadecimal digits
  std::uint64_t block_bytes = 0;  // 0: there are no blocks
  std::string blocks;             // 16 digits each
};

FileChecksum checksum_of(std::span<const std::byte> bytes, ChecksumGrain grain);

// "" or what is wrong with the bytes of a file, as the end of a sentence: "has the checksum ...".
std::string difference(std::span<const std::byte> bytes, const FileChecksum& stored);

// Where a file has checksums of blocks, the blocks of a part that is used; otherwise the whole file
// when the first part is.
class FileCheck final : public ByteCheck {
 public:
  FileCheck(std::shared_ptr<const MappedFile> file, FileChecksum stored);
  ~FileCheck() override;

  // The part must lie inside the file.
  void require(std::span<const std::byte> part) const override;
  bool by_block() const { return stored_.block_bytes > 0; }

 private:
  struct Compared;
  void require_block(std::uint64_t block) const;

  std::shared_ptr<const MappedFile> file_;
  FileChecksum stored_;
  std::unique_ptr<Compared> compared_;
};

// The checksums of any number of folders, each read once.
class StoredChecksums {
 public:
  // Null where the folder of the file has no checksums.json, or that does not name the file. When
  // the first file of a folder is asked for, throws Error unless all that are named are there and
  // have their sizes, and for a checksums.json that cannot be read.
  std::shared_ptr<const FileCheck> of(const std::shared_ptr<const MappedFile>& file);

 private:
  std::map<std::filesystem::path, std::map<std::string, FileChecksum>> folders_;
};

}  // namespace filigree
