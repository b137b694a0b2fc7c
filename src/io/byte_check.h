// What must hold of the bytes of a file before they are used. Files are mapped and read in parts,
// so that comparing all of them at the beginning would read what nobody asks for: bytes are
// compared when they are first used.
#pragma once

#include <cstddef>
#include <span>

namespace filigree {

class ByteCheck {
 public:
  virtual ~ByteCheck() = default;

  // Throws Error, naming the file, when the part of it is damaged. What was compared once is not
  // compared again. Any number of threads may call it.
  virtual void require(std::span<const std::byte> part) const = 0;
};

}  // namespace filigree
