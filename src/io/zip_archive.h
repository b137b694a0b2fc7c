// The members of a zip archive in memory, without decompressing: what NumPy and PyTorch write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace filigree {

struct ZipMember {
  std::string name;
  std::uint64_t method = 0;  // 0: stored as it is
  std::uint64_t size = 0, offset = 0;
};

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
