#include "io/stored_checksums.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "base/checksum.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "io/folder_checksums.h"

namespace filigree {
namespace {

// Rows are some kilobytes long and lie far apart: small blocks read little that is not asked for.
constexpr std::uint64_t kSmallestBlock = std::uint64_t{1} << 16;
// Half a megabyte of digits a file.
constexpr std::uint64_t kMostBlocks = std::uint64_t{1} << 15;
constexpr std::size_t kDigits = 16;

std::uint64_t blocks_in(std::uint64_t bytes, std::uint64_t block_bytes) {
  return bytes / block_bytes + (bytes % block_bytes > 0 ? 1 : 0);
}

std::span<const std::byte> block_of(std::span<const std::byte> bytes, std::uint64_t block,
                                    std::uint64_t block_bytes) {
  const std::uint64_t begin = block * block_bytes;
  return bytes.subspan(begin, std::min<std::uint64_t>(block_bytes, bytes.size() - begin));
}

std::string_view digits_of(const FileChecksum& stored, std::uint64_t block) {
  const std::string_view all = stored.blocks;
  return all.substr(std::min<std::uint64_t>(block * kDigits, all.size()), kDigits);
}

std::string problem_of_block(std::span<const std::byte> bytes, const FileChecksum& stored,
                             std::uint64_t block) {
  const std::span<const std::byte> part = block_of(bytes, block, stored.block_bytes);
  const std::string found = checksum_text(xxh64(part));
  if (found == digits_of(stored, block)) return "";
  const std::uint64_t begin = block * stored.block_bytes;
  return fmt::format("has the checksum {} in bytes {} to {} and should have {}", found, begin,
                     begin + part.size(), printable(digits_of(stored, block)));
}

std::string problem_of_whole(std::span<const std::byte> bytes, const FileChecksum& stored) {
  const std::string found = checksum_text(xxh64(bytes));
  if (found == stored.xxh64) return "";
  return fmt::format("has the checksum {} and should have {}", found, printable(stored.xxh64));
}

}  // namespace

FileChecksum checksum_of(std::span<const std::byte> bytes, ChecksumGrain grain) {
  FileChecksum sum{bytes.size(), checksum_text(xxh64(bytes)), 0, {}};
  if (grain == ChecksumGrain::kFiles || bytes.size() <= kSmallestBlock) return sum;
  sum.block_bytes = kSmallestBlock;
  while (blocks_in(sum.bytes, sum.block_bytes) > kMostBlocks) sum.block_bytes *= 2;
  for (std::uint64_t b = 0; b < blocks_in(sum.bytes, sum.block_bytes); ++b)
    sum.blocks += checksum_text(xxh64(block_of(bytes, b, sum.block_bytes)));
  return sum;
}

std::string difference(std::span<const std::byte> bytes, const FileChecksum& stored) {
  if (bytes.size() != stored.bytes)
    return fmt::format("has {} bytes and should have {}", bytes.size(), stored.bytes);
  for (std::uint64_t b = 0;
       stored.block_bytes > 0 && b < blocks_in(stored.bytes, stored.block_bytes); ++b)
    if (std::string problem = problem_of_block(bytes, stored, b); !problem.empty()) return problem;
  return problem_of_whole(bytes, stored);
}

struct FileCheck::Compared {
  explicit Compared(std::uint64_t blocks) : block(blocks) {}
  std::vector<std::atomic<bool>> block;
};

FileCheck::FileCheck(std::shared_ptr<const MappedFile> file, FileChecksum stored)
    : file_(std::move(file)), stored_(std::move(stored)) {
  if (file_->bytes().size() != stored_.bytes)
    fail_damaged(file_->path(), difference(file_->bytes(), stored_));
  const std::uint64_t blocks =
      by_block() ? blocks_in(stored_.bytes, stored_.block_bytes) : std::uint64_t{1};
  if (by_block() && stored_.blocks.size() != blocks * kDigits)
    fail("'{}': {} has {} digits for the {} blocks of this file, not {}",
         printable(file_->path().string(), 400), kChecksumsFile, stored_.blocks.size(), blocks,
         blocks * kDigits);
  compared_ = std::make_unique<Compared>(blocks);
}

FileCheck::~FileCheck() = default;

void FileCheck::require(std::span<const std::byte> part) const {
  if (part.empty()) return;
  if (!by_block()) return require_block(0);
  const auto begin = static_cast<std::uint64_t>(part.data() - file_->bytes().data());
  const std::uint64_t last = (begin + part.size() - 1) / stored_.block_bytes;
  for (std::uint64_t b = begin / stored_.block_bytes; b <= last; ++b) require_block(b);
}

void FileCheck::require_block(std::uint64_t block) const {
  std::atomic<bool>& compared = compared_->block.at(block);
  if (compared.load(std::memory_order_acquire)) return;
  const std::span<const std::byte> bytes = file_->bytes();
  const std::string problem =
      by_block() ? problem_of_block(bytes, stored_, block) : problem_of_whole(bytes, stored_);
  if (!problem.empty()) fail_damaged(file_->path(), problem);
  if (!by_block()) file_->release(bytes);  // of which a few rows may be all that is wanted
  compared.store(true, std::memory_order_release);
}

std::shared_ptr<const FileCheck> StoredChecksums::of(
    const std::shared_ptr<const MappedFile>& file) {
  const std::filesystem::path folder = file->path().parent_path();
  auto found = folders_.find(folder);
  if (found == folders_.end()) {
    std::map<std::string, FileChecksum> sums;
    if (has_checksums(folder)) {
      require_whole(folder, ChecksumDepth::kSizes);
      sums = read_checksums(folder);
    }
    found = folders_.emplace(folder, std::move(sums)).first;
  }
  const auto sum = found->second.find(file->path().filename().string());
  if (sum == found->second.end()) return nullptr;
  return std::make_shared<const FileCheck>(file, sum->second);
}

}  // namespace filigree
