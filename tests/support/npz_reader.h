// Reads .npz back for tests, by the format's description and not by the writer's code: the central
// directory, zip64 where it is used, every checksum, and the headers of the arrays.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/files.h"

namespace filigree {

struct NpyArray {
  std::string type;  // "<f4"
  std::vector<std::int64_t> shape;
  std::string data;

  template <typename Number>
  std::vector<Number> values() const {
    std::vector<Number> numbers(data.size() / sizeof(Number));
    std::memcpy(numbers.data(), data.data(), numbers.size() * sizeof(Number));
    return numbers;
  }
};

// The plain definition, one bit at a time.
inline std::uint32_t slow_crc32(const std::string& bytes) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const char c : bytes) {
    crc ^= static_cast<std::uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xEDB88320u : 0u);
  }
  return ~crc;
}

inline NpyArray parse_npy(const std::string& file) {
  const auto check = [](bool good, const char* what) {
    if (!good) throw std::runtime_error(std::string("npy: ") + what);
  };
  check(file.size() >= 10 && file.substr(0, 8) == std::string("\x93NUMPY\x01\x00", 8), "magic");
  const std::size_t length = static_cast<std::uint8_t>(file[8]) |
                             static_cast<std::size_t>(static_cast<std::uint8_t>(file[9])) << 8;
  check((10 + length) % 64 == 0, "alignment");
  const std::string header = file.substr(10, length);
  check(header.back() == '\n', "end of the header");
  std::smatch match;
  const std::regex form(
      R"(\{'descr': '(.+?)', 'fortran_order': False, 'shape': \(([0-9, ]*)\), \} *\n)");
  check(std::regex_match(header, match, form), "header");
  NpyArray array{match[1], {}, file.substr(10 + length)};
  const std::string extents = match[2];
  const std::regex extent("[0-9]+");
  for (std::sregex_iterator at(extents.begin(), extents.end(), extent), end; at != end; ++at)
    array.shape.push_back(std::stoll(at->str()));
  return array;
}

// The files of an archive by name. Throws std::runtime_error for anything out of order.
inline std::map<std::string, std::string> read_zip(const std::filesystem::path& path) {
  const std::string zip = read_file(path);
  const auto number = [&](std::uint64_t at, int bytes) {
    if (at + static_cast<std::uint64_t>(bytes) > zip.size())
      throw std::runtime_error("zip: number past the end");
    std::uint64_t value = 0;
    for (int i = 0; i < bytes; ++i)
      value |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(zip[at + i])) << (8 * i);
    return value;
  };
  const auto check = [](bool good, const std::string& what) {
    if (!good) throw std::runtime_error("zip: " + what);
  };
  const std::uint64_t end = zip.size() - 22;
  check(number(end, 4) == 0x06054b50, "end record");
  std::uint64_t count = number(end + 10, 2), size = number(end + 12, 4), at = number(end + 16, 4);
  if (at == 0xFFFFFFFF) {
    check(number(end - 20, 4) == 0x07064b50, "zip64 locator");
    const std::uint64_t end64 = number(end - 20 + 8, 8);
    check(number(end64, 4) == 0x06064b50, "zip64 end record");
    count = number(end64 + 32, 8), size = number(end64 + 40, 8), at = number(end64 + 48, 8);
    check(at + size == end64, "place of the zip64 end record");
  } else {
    check(at + size == end, "place of the end record");
  }
  std::map<std::string, std::string> files;
  for (std::uint64_t e = 0; e < count; ++e) {
    check(number(at, 4) == 0x02014b50, "central header");
    check(number(at + 10, 2) == 0, "stored");
    const std::uint64_t crc = number(at + 16, 4), name_size = number(at + 28, 2),
                        extra_size = number(at + 30, 2);
    std::uint64_t bytes = number(at + 24, 4), offset = number(at + 42, 4);
    std::uint64_t extra = at + 46 + name_size;
    if (bytes == 0xFFFFFFFF || offset == 0xFFFFFFFF) {
      check(number(extra, 2) == 1, "zip64 extra");
      extra += 4;
      if (bytes == 0xFFFFFFFF) bytes = number(extra, 8), extra += 16;
      if (offset == 0xFFFFFFFF) offset = number(extra, 8);
    }
    const std::string name = zip.substr(at + 46, name_size);
    check(number(offset, 4) == 0x04034b50, "local header of " + name);
    check(number(offset + 26, 2) == name_size && zip.substr(offset + 30, name_size) == name,
          "local name of " + name);
    const std::uint64_t data = offset + 30 + name_size + number(offset + 28, 2);
    const std::string contents = zip.substr(data, bytes);
    check(contents.size() == bytes && slow_crc32(contents) == crc, "checksum of " + name);
    check(number(data + bytes, 4) == 0x08074b50 && number(data + bytes + 4, 4) == crc,
          "descriptor of " + name);
    check(files.emplace(name, contents).second, "doubled " + name);
    at += 46 + name_size + extra_size;
  }
  return files;
}

}  // namespace filigree
