#include "report/packed_maps.h"

#include <cmath>

#include "filigree/error.h"

namespace filigree {

PackedMaps::PackedMaps() {
  require(deflateInit(&stream_, Z_DEFAULT_COMPRESSION) == Z_OK,
          "report: out of memory for compressing maps");
}

PackedMaps::~PackedMaps() { deflateEnd(&stream_); }

void PackedMaps::add(std::span<const float> map, std::int64_t size) {
  require(!finished_, "report: a map was added after the last");
  require(static_cast<std::int64_t>(map.size()) == size * size, "report: {} weights are no {} x {}",
          map.size(), size, size);
  input_.clear();
  for (std::int64_t i = 0; i < size; ++i)
    for (std::int64_t j = 0; j <= i; ++j) {
      const float weight = map[static_cast<std::size_t>(i * size + j)];
      require(weight >= 0.0f && weight <= 1.0001f,
              "report: the attention weight {} of query {} and key {} is not between 0 and 1",
              weight, i, j);
      const long rounded = std::lround(std::fmin(weight, 1.0f) * 65535.0f);
      const long stored = weight > 0.0f && rounded == 0 ? 1 : rounded;
      input_.push_back(static_cast<unsigned char>(stored & 0xff));
      input_.push_back(static_cast<unsigned char>(stored >> 8));
    }
  compress(Z_NO_FLUSH);
}

void PackedMaps::compress(int flush) {
  stream_.next_in = input_.data();
  stream_.avail_in = static_cast<uInt>(input_.size());
  unsigned char room[1 << 14];
  int status = Z_OK;
  do {
    stream_.next_out = room;
    stream_.avail_out = sizeof room;
    status = deflate(&stream_, flush);
    require(status != Z_STREAM_ERROR, "report: zlib failed");
    output_.insert(output_.end(), room, stream_.next_out);
  } while (flush == Z_FINISH ? status != Z_STREAM_END : stream_.avail_in > 0);
}

std::string PackedMaps::finish() {
  require(!finished_, "report: the maps are finished already");
  finished_ = true;
  input_.clear();
  compress(Z_FINISH);
  return base64(output_);
}

std::string packed_text(std::string_view text) {
  uLongf size = compressBound(static_cast<uLong>(text.size()));
  std::vector<unsigned char> packed(size);
  require(compress(packed.data(), &size, reinterpret_cast<const Bytef*>(text.data()),
                   static_cast<uLong>(text.size())) == Z_OK,
          "report: out of memory for compressing a figure");
  packed.resize(size);
  return base64(packed);
}

std::string base64(std::span<const unsigned char> bytes) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t b = 0; b < 3; ++b) group = group << 8 | (b < count ? bytes[i + b] : 0u);
    for (std::size_t d = 0; d < 4; ++d)
      text += d <= count ? kDigits[group >> (18 - 6 * d) & 63] : '=';
  }
  return text;
}

}  // namespace filigree
