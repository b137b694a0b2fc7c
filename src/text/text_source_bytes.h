// The bytes of a file as text, whatever it was compressed with: plain, .xz or .zst, told apart by
// the first bytes and not by the name. Memory is bounded: what a compressed file may ask for to be
// unpacked is limited.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace filigree {

class TextBytes {
 public:
  // Throws Error when the file is missing, unreadable, a folder, or compressed in another way.
  static std::unique_ptr<TextBytes> open(const std::filesystem::path& path);

  virtual ~TextBytes() = default;

  // Puts the next bytes at the start of `out`, which must not be empty; 0 at the end of the text
  // only. Throws Error naming the file and the position for data that is corrupt or ends too early.
  virtual std::size_t read(std::span<char> out) = 0;

  // Bytes of the file taken so far, compressed as they lie there.
  virtual std::uint64_t file_position() const = 0;
};

}  // namespace filigree
