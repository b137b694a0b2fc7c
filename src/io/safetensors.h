// Reading safetensors files without copying: a file is mapped, its header checked in full, and each
// tensor becomes a view into the mapping.
//
// Layout: 8 bytes header length N (little endian), N bytes of JSON
//   {"__metadata__": {text: text}, name: {"dtype": ..., "shape": [...], "data_offsets": [b, e]},
//   ...}
// padded with spaces, then the data that the offsets count from. After a file has opened, names are
// unique, every view lies inside the data, its size is that of its shape and kind, and the views
// cover the data exactly, without overlaps or holes, as the format demands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "filigree/device.h"
#include "io/byte_check.h"
#include "io/tensor_kind.h"

namespace filigree {

// The format's own limit on the header.
inline constexpr std::uint64_t kMaxSafetensorsHeader = 100000000;

// More than any framework allows or writes; they bound what a hostile header makes the reader keep.
inline constexpr std::size_t kMaxTensorRank = 64;
inline constexpr std::size_t kMaxMetadataKeys = 100000;

struct TensorView {
  std::string name;
  TensorKind kind = TensorKind::kF32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> data;
  std::shared_ptr<const void> owner;  // keeps `data` mapped; share it with whatever points there
  // What must hold of the file around `data` before it is used; null: nothing is known.
  std::shared_ptr<const ByteCheck> check = nullptr;

  // `data`, or a part of it, once it was compared with the checksums that the file has. Throws
  // Error when it is damaged. All reading of elements goes through here.
  std::span<const std::byte> bytes() const { return bytes(0, data.size()); }
  std::span<const std::byte> bytes(std::size_t begin, std::size_t count) const;

  // 1 for a scalar (shape []).
  std::int64_t element_count() const;

  // Whether `data` may be read through a pointer to its element type; copy it when not.
  bool aligned() const;

  // Throws Error naming the tensor when its kind is not one that can be computed with.
  DType dtype() const;
};

// Copies F64, F32, BF16, F16 or quantised elements to f32, aligned or not. Throws Error for other
// kinds or when the sizes differ.
void read_f32(const TensorView& view, std::span<float> to);

// The same of some rows, stretches along the last extent; no other part of the file is read.
std::int64_t row_count(const TensorView& view);
void read_f32_rows(const TensorView& view, std::int64_t first, std::int64_t count,
                   std::span<float> to);

// Copies I32 elements; same rules.
void read_i32(const TensorView& view, std::span<std::int32_t> to);

class SafetensorsFile {
 public:
  static SafetensorsFile open(const std::filesystem::path& path);

  // The same checks on bytes in memory. `source` is the name messages carry; the views share
  // `owner`, and without one the caller keeps `bytes` alive.
  static SafetensorsFile from_bytes(std::span<const std::byte> bytes, const std::string& source,
                                    const std::shared_ptr<const void>& owner = nullptr);

  // In the order of their data.
  const std::vector<TensorView>& tensors() const { return tensors_; }

  // nullptr when there is none.
  const TensorView* find(std::string_view name) const;

  // Throws Error listing the nearest names.
  const TensorView& at(std::string_view name) const;

  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::string& source() const { return source_; }

 private:
  SafetensorsFile() = default;
  void index_names(const std::string& label);
  void check_coverage(const std::string& label, std::span<const std::byte> data);

  std::string source_;
  std::vector<TensorView> tensors_;
  std::vector<std::size_t> by_name_;  // indices into tensors_, sorted by name
  std::map<std::string, std::string> metadata_;
};

// "'a', 'b', 'c'": the names nearest to `name`, for messages about a tensor that is not there.
std::string nearest_tensor_names(std::string_view name, std::vector<std::string> candidates);

}  // namespace filigree
