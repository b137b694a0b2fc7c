// Reading NumPy's .npz without copying: the archive is mapped, its directory checked, and each
// array becomes a view into the mapping.
//
// Arrays must be stored as numpy.savez writes them: uncompressed, C-ordered, little-endian, of a
// kind that tensors have. After a file has opened, names are unique and every view lies inside the
// file and has the size of its shape. An array's CRC-32 is compared when the array is first read.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/safetensors.h"
#include "io/zip_archive.h"

namespace filigree {

class NpzFile {
 public:
  static NpzFile open(const std::filesystem::path& path);

  // The same checks on bytes in memory, as SafetensorsFile::from_bytes().
  static NpzFile from_bytes(std::span<const std::byte> bytes, const std::string& source,
                            const std::shared_ptr<const void>& owner = nullptr,
                            ZipChecksums checksums = ZipChecksums::kCompare);

  // By the names that NumPy gives them: without ".npy". Entries that are no arrays are left out.
  const std::vector<TensorView>& tensors() const { return tensors_; }

  // nullptr when there is none.
  const TensorView* find(std::string_view name) const;

  // Throws Error listing the nearest names.
  const TensorView& at(std::string_view name) const;

  const std::string& source() const { return source_; }

 private:
  NpzFile() = default;

  std::string source_;
  std::vector<TensorView> tensors_;
};

}  // namespace filigree
