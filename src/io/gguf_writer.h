// Writing GGUF files, version 3: metadata and then one tensor after the other, through a file
// beside the target that is renamed at the end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/safetensors_writer.h"

namespace filigree {

// Entries of metadata as they will lie in the file, in the order in which they are added.
class GgufEntries {
 public:
  void integer(std::string_view key, std::int64_t value);  // as u32; throws Error beyond
  void number(std::string_view key, double value);         // as f32
  void boolean(std::string_view key, bool value);
  void text(std::string_view key, std::string_view value);
  void texts(std::string_view key, std::span<const std::string> values);
  void integers(std::string_view key, std::span<const std::int32_t> values);
  void numbers(std::string_view key, std::span<const float> values);

  void append(const GgufEntries& more) {
    bytes_ += more.bytes_;
    count_ += more.count_;
  }

  std::uint64_t count() const { return count_; }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  std::uint64_t count_ = 0;
};

// The tensors in the order given, with the names of the file and shapes first extent first. Throws
// Error on kinds that GGUF does not have, more than four extents, names that occur twice, data
// whose size is not that of its shape, and failed writes.
void write_gguf(const std::filesystem::path& path, const GgufEntries& entries,
                std::span<const TensorToWrite> tensors);

}  // namespace filigree
