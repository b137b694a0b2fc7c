#include "figure/png_chunks.h"

#include <zlib.h>

#include <cmath>
#include <cstdint>

#include "filigree/error.h"

namespace filigree::figure {

namespace {

std::string big_endian(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

std::string deflated(const std::string& bytes) {
  uLongf length = compressBound(static_cast<uLong>(bytes.size()));
  std::string out(length, '\0');
  const int status = compress2(reinterpret_cast<Bytef*>(out.data()), &length,
                               reinterpret_cast<const Bytef*>(bytes.data()),
                               static_cast<uLong>(bytes.size()), Z_DEFAULT_COMPRESSION);
  require(status == Z_OK, "figure: compressing a map of {} bytes failed: {}", bytes.size(),
          zError(status));
  out.resize(length);
  return out;
}

}  // namespace

std::string png_chunk(std::string_view type, std::string_view data) {
  const std::string content = std::string(type) + std::string(data);
  const uLong checksum =
      crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size()));
  return big_endian(static_cast<std::uint32_t>(data.size())) + content +
         big_endian(static_cast<std::uint32_t>(checksum));
}

std::string indexed_png(const LevelMap& map, const LevelColors& colors) {
  // 8 bits a pixel, colour type 3: palette; then the only compression and filter methods there are.
  const std::string header = big_endian(static_cast<std::uint32_t>(map.columns)) +
                             big_endian(static_cast<std::uint32_t>(map.rows)) +
                             std::string("\x08\x03\0\0\0", 5);
  std::string palette;
  for (const Color& color : colors) palette += big_endian(color.rgb()).substr(1);
  std::string rows;
  rows.reserve(map.rows * (map.columns + 1));
  for (std::size_t row = 0; row < map.rows; ++row) {
    rows += '\0';  // no filter: neighbouring levels are no better predicted than repeated
    rows.append(reinterpret_cast<const char*>(map.levels.data()) + row * map.columns, map.columns);
  }
  return "\x89PNG\r\n\x1A\n" + png_chunk("IHDR", header) + png_chunk("PLTE", palette) +
         png_chunk("IDAT", deflated(rows)) + png_chunk("IEND", "");
}

void insert_resolution(std::string& png, double dpi) {
  constexpr std::size_t kEndOfHeader = 8 + 25;  // signature, IHDR
  const std::string per_metre = big_endian(static_cast<std::uint32_t>(std::lround(dpi / 0.0254)));
  png.insert(kEndOfHeader, png_chunk("pHYs", per_metre + per_metre + '\1'));
}

}  // namespace filigree::figure
