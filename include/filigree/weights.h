// How weights lie in files, and how far such files are checked when they are read.
#pragma once

#include <cstdint>
#include <string>

#include "filigree/names.h"

namespace filigree {

// Of matrices: numbers of a type, or 8-bit integers with a scale for each row.
enum class MatrixType { kF32, kBf16, kF16, kI8 };

template <>
inline constexpr auto kNames<MatrixType> =
    std::to_array<Named<MatrixType>>({{MatrixType::kF32, "f32"},
                                      {MatrixType::kBf16, "bf16"},
                                      {MatrixType::kF16, "f16"},
                                      {MatrixType::kI8, "i8"}});

// What to do with numbers that are NaN or infinite, or become infinite in a narrower type.
enum class NotFinite { kRefuse, kKeep };

template <>
inline constexpr auto kNames<NotFinite> =
    std::to_array<Named<NotFinite>>({{NotFinite::kRefuse, "refuse"}, {NotFinite::kKeep, "keep"}});

// How much of a folder is held against the checksums stored beside it.
enum class ChecksumDepth {
  kSizes,     // costs nothing
  kContents,  // reads every byte
};

// What became of a file that the checksums name.
struct CheckedFile {
  std::string name;
  std::uint64_t bytes = 0;  // as stored
  std::string problem;      // "" where there is none
};

}  // namespace filigree
