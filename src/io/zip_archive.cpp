#include "filigree/io/zip_archive.h"

#include <algorithm>

#include "filigree/base/error.h"

namespace filigree {
namespace {

constexpr std::uint32_t kEndRecord = 0x06054b50, kEnd64Record = 0x06064b50,
                        kEnd64Locator = 0x07064b50, kCentralHeader = 0x02014b50,
                        kLocalHeader = 0x04034b50;
constexpr std::uint64_t kLongestComment = 65535;

}  // namespace

void ZipArchive::check(std::uint64_t at, std::uint64_t size) const {
  if (at > bytes_.size() || size > bytes_.size() - at)
    fail("{}: {} bytes at {} lie outside of the file, which has {}", label_, size, at,
         bytes_.size());
}

std::uint64_t ZipArchive::number(std::uint64_t at, int bytes) const {
  check(at, static_cast<std::uint64_t>(bytes));
  std::uint64_t value = 0;
  for (int i = bytes; i-- > 0;)
    value = value << 8 | std::to_integer<std::uint64_t>(bytes_[at + static_cast<std::uint64_t>(i)]);
  return value;
}

ZipArchive::Directory ZipArchive::directory() const {
  constexpr std::uint64_t kEndSize = 22;
  if (size() < kEndSize) fail("{}: {} bytes long, too short for an archive", label_, size());
  const std::uint64_t last = size() - kEndSize;
  const std::uint64_t first = last - std::min(last, kLongestComment);
  std::uint64_t end = last;
  while (number(end, 4) != kEndRecord) {
    if (end == first) fail("{}: not a zip archive, as {} are", label_, what_);
    --end;
  }
  if (end >= 20 && number(end - 20, 4) == kEnd64Locator) {
    const std::uint64_t end64 = number(end - 20 + 8, 8);
    if (number(end64, 4) != kEnd64Record)
      fail("{}: the end record of zip64 is not at byte {}", label_, end64);
    return {number(end64 + 48, 8), number(end64 + 40, 8)};
  }
  return {number(end + 16, 4), number(end + 12, 4)};
}

// Sizes and offsets that do not fit 32 bits are in the extra field of kind 1, those only.
void ZipArchive::read_zip64(std::uint64_t at, std::uint64_t size, std::uint64_t compressed,
                            ZipMember& member) const {
  constexpr std::uint64_t kElsewhere = 0xFFFFFFFF;
  const std::uint64_t end = at + size;
  while (at + 4 <= end) {
    const std::uint64_t kind = number(at, 2), length = number(at + 2, 2);
    at += 4;
    if (kind == 1) {
      for (std::uint64_t* field : {&member.size, &compressed, &member.offset}) {
        if (*field != kElsewhere) continue;
        *field = number(at, 8);
        at += 8;
      }
      return;
    }
    at += length;
  }
}

std::vector<ZipMember> ZipArchive::members(std::size_t most) const {
  const Directory directory = this->directory();
  part(directory.at, directory.size);
  std::vector<ZipMember> members;
  std::uint64_t at = directory.at;
  const std::uint64_t end = directory.at + directory.size;
  while (at < end) {
    if (number(at, 4) != kCentralHeader)
      fail("{}: no entry of the directory at byte {}", label_, at);
    if (members.size() == most) fail("{}: more than {} entries", label_, most);
    const std::uint64_t name = number(at + 28, 2), extra = number(at + 30, 2),
                        comment = number(at + 32, 2);
    ZipMember member{std::string(text(at + 46, name)), number(at + 10, 2), number(at + 24, 4),
                     number(at + 42, 4)};
    read_zip64(at + 46 + name, extra, number(at + 20, 4), member);
    members.push_back(std::move(member));
    at += 46 + name + extra + comment;
  }
  return members;
}

std::uint64_t ZipArchive::content(const ZipMember& member, const std::string& label) const {
  if (number(member.offset, 4) != kLocalHeader)
    fail("{}: nothing begins at byte {}", label, member.offset);
  const std::uint64_t at =
      member.offset + 30 + number(member.offset + 26, 2) + number(member.offset + 28, 2);
  part(at, member.size);
  return at;
}

}  // namespace filigree
