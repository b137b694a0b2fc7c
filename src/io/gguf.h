// Reading GGUF files, versions 2 and 3, little endian: a file is mapped, what describes it is
// checked in full, and each tensor becomes a view into the mapping.
//
// Layout: "GGUF", version, number of tensors, number of metadata entries; the entries (name, type,
// value); for each tensor its name, extents from the last to the first, type and offset; then, from
// a multiple of general.alignment on, the data that the offsets count from. After a file has
// opened, keys and names are unique and UTF-8, every value lies inside the file, every tensor
// inside its data at a multiple of the alignment, and no two overlap. Texts of the metadata are
// checked when they are asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/safetensors.h"

namespace filigree {

inline constexpr std::uint32_t kGgufMagic = 0x46554747;  // "GGUF"
inline constexpr std::uint32_t kGgufVersion = 3;
inline constexpr std::size_t kGgufAlignment = 32;  // unless general.alignment says otherwise

// More than any program writes; they bound what a hostile file makes the reader keep.
inline constexpr std::uint64_t kMaxGgufEntries = 1 << 16;
inline constexpr std::uint64_t kMaxGgufTensors = 1 << 20;

// In the order of their numbers in files.
enum class GgufType : std::uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kText,
  kArray,
  kU64,
  kI64,
  kF64,
};

// The number of a type of tensors in files, and back; nothing where there is none.
std::optional<std::uint32_t> ggml_type_of(TensorKind kind);
std::optional<TensorKind> kind_of_ggml_type(std::uint32_t number);

// Whether a file's name ends in .gguf.
bool has_gguf_ending(const std::filesystem::path& path);

// Typed access to the metadata. Every Error names the file, the key, what was found and what would
// be right. In the *_or functions an absent key gives the fallback; one of another type is an
// Error.
class GgufMetadata {
 public:
  bool has(std::string_view key) const { return find(key) != nullptr; }
  std::size_t size() const { return entries_.size(); }
  // In the order of the file.
  std::vector<std::string> keys() const;

  // Of any type of integers; those of floats where they are whole, as some programs write them.
  std::int64_t integer(std::string_view key, std::int64_t min, std::int64_t max) const;
  std::int64_t integer_or(std::string_view key, std::int64_t fallback, std::int64_t min,
                          std::int64_t max) const;
  // Of f32 the shortest decimal number that is it: 1e-05, not 9.99999975e-06.
  double number(std::string_view key) const;
  double number_or(std::string_view key, double fallback) const;
  bool boolean_or(std::string_view key, bool fallback) const;
  std::string text(std::string_view key) const;
  std::string text_or(std::string_view key, std::string fallback) const;

  // Of arrays.
  bool is_array(std::string_view key) const;
  std::uint64_t length(std::string_view key) const;
  std::vector<std::string_view> texts(std::string_view key) const;  // point into the file
  std::vector<std::int64_t> integers(std::string_view key) const;
  std::vector<double> numbers(std::string_view key) const;

  const std::string& source() const { return source_; }

 private:
  friend class GgufFile;
  struct Entry {
    std::string key;
    GgufType type = GgufType::kU8;  // of the elements of an array
    bool array = false;
    std::uint64_t count = 1;
    std::span<const std::byte> bytes;
  };
  const Entry* find(std::string_view key) const;
  const Entry& at(std::string_view key) const;
  const Entry& scalar(std::string_view key) const;
  const Entry& array(std::string_view key) const;
  [[noreturn]] void wrong(const Entry& entry, std::string_view wanted) const;
  std::int64_t integer_at(const Entry& entry, std::uint64_t index) const;
  double number_at(const Entry& entry, std::uint64_t index) const;
  std::string_view checked_text(const Entry& entry, std::string_view text,
                                std::uint64_t index) const;

  std::string source_;  // "gguf: 'model.gguf'"
  std::vector<Entry> entries_;
  std::vector<std::size_t> by_key_;  // indices into entries_, sorted
  std::shared_ptr<const void> owner_;
};

class GgufFile {
 public:
  static GgufFile open(const std::filesystem::path& path);

  // The same checks on bytes in memory, as SafetensorsFile::from_bytes().
  static GgufFile from_bytes(std::span<const std::byte> bytes, const std::string& source,
                             const std::shared_ptr<const void>& owner = nullptr);

  const GgufMetadata& metadata() const { return metadata_; }
  // In the order of the file, with the names of the file and shapes first extent first.
  const std::vector<TensorView>& tensors() const { return tensors_; }
  std::uint32_t version() const { return version_; }

 private:
  GgufFile() = default;

  std::uint32_t version_ = kGgufVersion;
  GgufMetadata metadata_;
  std::vector<TensorView> tensors_;
};

}  // namespace filigree
