// Attention maps as the report page stores them: of every head the lower triangle row by row, in
// 65535ths, little-endian 16-bit numbers, deflated and written in base64.
//
// Maps are compressed as they come, so that memory holds the compressed form only. A weight that is
// not zero is stored as at least one 65535th: zero in the page means zero.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace filigree {

class PackedMaps {
 public:
  PackedMaps();
  ~PackedMaps();
  PackedMaps(const PackedMaps&) = delete;
  PackedMaps& operator=(const PackedMaps&) = delete;

  // The next head's map, [size, size] row-major; what lies above the diagonal is not read. Throws
  // Error when a weight is not finite, below 0 or (by more than rounding) above 1.
  void add(std::span<const float> map, std::int64_t size);

  // The base64 text; nothing can be added after.
  std::string finish();

 private:
  void compress(int flush);

  z_stream stream_ = {};
  std::vector<unsigned char> input_, output_;
  bool finished_ = false;
};

std::string base64(std::span<const unsigned char> bytes);

// A text as maps are packed: deflated and written in base64. Drawings shrink to a fifth.
std::string packed_text(std::string_view text);

}  // namespace filigree
