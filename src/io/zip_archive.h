// The members of a zip archive in memory, without decompressing: what NumPy and PyTorch write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/byte_check.h"

namespace filigree {

struct ZipMember {
  std::string name;
  std::uint64_t method = 0;  // 0: stored as it is
  std::uint64_t size = 0, offset = 0;
  std::uint32_t crc = 0;  // of the content
};

// Whether the checksums of members are compared. Not where a fuzzer changes the bytes: it would get
// no further than to the first checksum.
enum class ZipChecksums { kCompare, kIgnore };

// Numbers and parts of the archive, each checked to lie inside of it. Messages of Errors begin with
// `label`; `what` is what such archives are, for one that is none.
class ZipArchive {
 public:
  ZipArchive(std::span<const std::byte> bytes, std::string label, std::string what)
      : bytes_(bytes), label_(std::move(label)), what_(std::move(what)) {}

  std::uint64_t number(std::uint64_t at, int bytes) const;
  std::span<const std::byte> part(std::uint64_t at, std::uint64_t size) const {
    check(at, size);
    return bytes_.subspan(at, size);
  }
  std::string_view text(std::uint64_t at, std::uint64_t size) const {
    return {reinterpret_cast<const char*>(part(at, size).data()), size};
  }
  std::uint64_t size() const { return bytes_.size(); }
  const std::string& label() const { return label_; }

  // In the order of the directory. Throws Error for what is no archive, and for more than `most`.
  std::vector<ZipMember> members(std::size_t most) const;

  // Where the content of a member begins, which lies inside of the archive; it must be stored as it
  // is. Messages begin with `label`.
  std::uint64_t content(const ZipMember& member, const std::string& label) const;
  // Compares the whole content with its CRC-32, once, when a part of it is first used. Null where
  // the directory has 0: that is what writers leave that were told not to compute it. The bytes of
  // the archive must outlive it, or `owner` keep them.
  std::shared_ptr<const ByteCheck> check_of(const ZipMember& member, const std::string& label,
                                            std::shared_ptr<const void> owner) const;

 private:
  struct Directory {
    std::uint64_t at = 0, size = 0;
  };
  Directory directory() const;
  void read_zip64(std::uint64_t at, std::uint64_t size, std::uint64_t compressed,
                  ZipMember& member) const;
  void check(std::uint64_t at, std::uint64_t size) const;

  std::span<const std::byte> bytes_;
  std::string label_, what_;
};

}  // namespace filigree
