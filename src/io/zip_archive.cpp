#include "io/zip_archive.h"

#include <zlib.h>

#include <algorithm>
#include <atomic>

#include "filigree/error.h"
#include "filigree/runtime.h"

namespace filigree {
namespace {

constexpr std::uint32_t kEndRecord = 0x06054b50, kEnd64Record = 0x06064b50,
                        kEnd64Locator = 0x07064b50, kCentralHeader = 0x02014b50,
                        kLocalHeader = 0x04034b50;
constexpr std::uint64_t kLongestComment = 65535;

// Of a large content in parts by all threads.
std::uint32_t crc_of(std::span<const std::byte> bytes) {
  constexpr std::size_t kPart = std::size_t{4} << 20;
  const std::size_t parts = (bytes.size() + kPart - 1) / kPart;
  std::vector<uLong> crcs(parts);
  const auto part_of = [&](std::size_t i) {
    return bytes.subspan(i * kPart, std::min(kPart, bytes.size() - i * kPart));
  };
  parallel_for(static_cast<std::int64_t>(parts), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
      crcs[i] = crc32_z(0, reinterpret_cast<const Bytef*>(part_of(i).data()), part_of(i).size());
  });
  uLong crc = 0;
  for (std::size_t i = 0; i < parts; ++i)
    crc = crc32_combine(crc, crcs[i], static_cast<z_off_t>(part_of(i).size()));
  return static_cast<std::uint32_t>(crc);
}

class MemberCheck final : public ByteCheck {
 public:
  MemberCheck(std::span<const std::byte> content, std::uint32_t crc, std::string label,
              std::shared_ptr<const void> owner)
      : content_(content), crc_(crc), label_(std::move(label)), owner_(std::move(owner)) {}

  void require(std::span<const std::byte> /*part*/) const override {
    if (compared_.load(std::memory_order_acquire)) return;
    const std::uint32_t found = crc_of(content_);
    if (found != crc_)
      fail("{} has the CRC-32 {:08x} and should have {:08x}: the file is damaged; fetch it again",
           label_, found, crc_);
    compared_.store(true, std::memory_order_release);
  }

 private:
  std::span<const std::byte> content_;
  std::uint32_t crc_;
  std::string label_;
  std::shared_ptr<const void> owner_;
  mutable std::atomic<bool> compared_ = false;
};

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
                     number(at + 42, 4), static_cast<std::uint32_t>(number(at + 16, 4))};
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

std::shared_ptr<const ByteCheck> ZipArchive::check_of(const ZipMember& member,
                                                      const std::string& label,
                                                      std::shared_ptr<const void> owner) const {
  if (member.crc == 0) return nullptr;
  return std::make_shared<const MemberCheck>(part(content(member, label), member.size), member.crc,
                                             label, std::move(owner));
}

}  // namespace filigree
