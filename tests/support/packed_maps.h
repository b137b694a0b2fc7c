// Maps as the server sends them: base64 of deflated 16-bit numbers.
#pragma once

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <zlib.h>

#include <string>
#include <vector>

#include "support/base64.h"

namespace filigree {

// The 16-bit numbers of a packed map.
inline std::vector<double> unpacked(const nlohmann::json& maps, std::size_t cells) {
  const std::string packed = from_base64(maps.get<std::string>());
  std::vector<unsigned char> bytes(2 * cells + 1);
  uLongf size = bytes.size();
  EXPECT_EQ(
      uncompress(bytes.data(), &size, reinterpret_cast<const Bytef*>(packed.data()), packed.size()),
      Z_OK);
  EXPECT_EQ(size, 2 * cells);
  std::vector<double> weights;
  for (std::size_t c = 0; c < cells; ++c)
    weights.push_back((bytes[2 * c] + 256 * bytes[2 * c + 1]) / 65535.0);
  return weights;
}

}  // namespace filigree
