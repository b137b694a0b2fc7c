// Compares a PNG with a stored one.
#pragma once

#include <cairo.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace filigree {

struct Picture {
  int width = 0, height = 0;
  std::vector<std::uint32_t> pixels = {};  // 0x00RRGGBB
};

// Empty when the bytes are no PNG.
inline Picture decode_png(std::string_view bytes) {
  const auto read = [](void* closure, unsigned char* data, unsigned int length) {
    auto* rest = static_cast<std::string_view*>(closure);
    if (rest->size() < length) return CAIRO_STATUS_READ_ERROR;
    std::memcpy(data, rest->data(), length);
    rest->remove_prefix(length);
    return CAIRO_STATUS_SUCCESS;
  };
  const std::unique_ptr<cairo_surface_t, void (*)(cairo_surface_t*)> surface(
      cairo_image_surface_create_from_png_stream(read, &bytes), cairo_surface_destroy);
  if (cairo_surface_status(surface.get()) != CAIRO_STATUS_SUCCESS) return {};
  Picture picture = {cairo_image_surface_get_width(surface.get()),
                     cairo_image_surface_get_height(surface.get())};
  const unsigned char* data = cairo_image_surface_get_data(surface.get());
  const int stride = cairo_image_surface_get_stride(surface.get());
  picture.pixels.resize(static_cast<std::size_t>(picture.width) *
                        static_cast<std::size_t>(picture.height));
  for (int row = 0; row < picture.height; ++row) {
    auto* out = picture.pixels.data() +
                static_cast<std::size_t>(row) * static_cast<std::size_t>(picture.width);
    std::memcpy(out, data + static_cast<std::ptrdiff_t>(row) * stride,
                static_cast<std::size_t>(picture.width) * 4);
  }
  for (std::uint32_t& pixel : picture.pixels) pixel &= 0xFFFFFF;
  return picture;
}

// The largest difference of a colour channel.
inline int difference(std::uint32_t a, std::uint32_t b) {
  int largest = 0;
  for (const int shift : {0, 8, 16}) {
    const int left = static_cast<int>(a >> shift & 255), right = static_cast<int>(b >> shift & 255);
    largest = std::max(largest, std::abs(left - right));
  }
  return largest;
}

// What differs, or "" for pictures that look the same: other versions of the font renderer may
// shade edges a little differently, but hardly a pixel in ten thousand by much.
inline std::string compare_pictures(const Picture& actual, const Picture& stored) {
  if (actual.width != stored.width || actual.height != stored.height)
    return fmt::format("{} x {} pixels instead of {} x {}", actual.width, actual.height,
                       stored.width, stored.height);
  constexpr int kShade = 24;
  std::size_t different = 0;
  int largest = 0;
  for (std::size_t i = 0; i < actual.pixels.size(); ++i) {
    const int by = difference(actual.pixels[i], stored.pixels[i]);
    different += by > kShade;
    largest = std::max(largest, by);
  }
  if (different <= actual.pixels.size() / 10000) return "";
  return fmt::format("{} of {} pixels differ, by up to {} of 255", different, actual.pixels.size(),
                     largest);
}

}  // namespace filigree
