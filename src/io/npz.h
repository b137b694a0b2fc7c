// Writing NumPy's .npz: a zip archive, uncompressed, of one .npy file for each array, written as
// the data comes, so that an archive may be larger than memory.
//
//   NpzWriter npz("maps.npz");
//   npz.begin("weights", TensorKind::kF32, {2, 9, 9});
//   npz.write(bytes_of_first_half);  npz.write(bytes_of_second_half);
//   npz.add_text("meta.json", "{}");      // NumPy gives entries that are no arrays as bytes
//   npz.commit();
//
// Arrays are C-ordered and little-endian. Checksums follow the data of each entry (general purpose
// flag 3), because they are not known before it. Beyond 4 GiB the records of zip64 are written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/atomic_file.h"
#include "io/tensor_kind.h"

namespace filigree {

// Magic, version and description of an array, padded so that the data begins at a multiple of 64.
// Throws Error for kinds that NumPy does not have.
std::string npy_header(TensorKind kind, std::span<const std::int64_t> shape);

class NpzWriter {
 public:
  // `zip64_from`: sizes and offsets from here on use zip64; smaller only in tests. Throws Error
  // when the file cannot be created.
  explicit NpzWriter(std::filesystem::path path, std::uint64_t zip64_from = 0xFFFFFFFF);

  // Begins an array; the one before must be complete. Throws Error for a doubled or empty name, one
  // with a '/', '\' or NUL, and names that are not UTF-8.
  void begin(const std::string& name, TensorKind kind, std::vector<std::int64_t> shape);
  // The next bytes of the array's data. Throws Error when they are more than it has room for.
  void write(std::span<const std::byte> bytes);

  // A whole array, and a whole file that is none.
  void add(const std::string& name, TensorKind kind, std::vector<std::int64_t> shape,
           std::span<const std::byte> bytes);
  void add_text(const std::string& file, std::string_view text);

  // Puts the archive in its place. Throws Error when the last array is not complete.
  void commit();

 private:
  struct Entry {
    std::string file;
    std::uint64_t offset = 0, size = 0;
    std::uint32_t crc = 0;
  };

  void begin_entry(const std::string& file, std::uint64_t size);
  void end_entry();
  void put(std::string_view bytes);
  void put_data(std::span<const std::byte> bytes);
  void check_complete() const;

  std::filesystem::path path_;
  std::uint64_t zip64_from_;
  AtomicFile file_;
  std::vector<Entry> entries_;
  std::uint64_t position_ = 0;   // in the archive
  std::uint64_t remaining_ = 0;  // bytes that the current entry still lacks
  bool open_ = false;
};

}  // namespace filigree
