#include "text/text_source_bytes.h"

#include <fcntl.h>
#include <lzma.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/lack_of_memory.h"
#include "filigree/error.h"
#include "filigree/names.h"

namespace filigree {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t kSourceBytes = std::size_t{1} << 16;
// xz -9 needs 65 MiB to unpack, zstd -19 8 MiB and zstd --ultra --long 128 MiB.
constexpr std::uint64_t kXzMemoryLimit = std::uint64_t{512} << 20;
constexpr int kZstdWindowLog = 27;

// A file read block by block; pipes too, as it never seeks.
class BlockReader {
 public:
  explicit BlockReader(const std::filesystem::path& path)
      : name_("'" + printable(path.string()) + "'"),
        descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) fail("cannot read {}: {}", name_, std::strerror(errno));
    struct stat status = {};
    if (::fstat(descriptor_, &status) != 0) {
      const int code = errno;
      ::close(descriptor_);
      fail("cannot read {}: {}", name_, std::strerror(code));
    }
    // A device may never end; a terminal and /dev/null do.
    const bool endless = (S_ISBLK(status.st_mode) || S_ISCHR(status.st_mode)) &&
                         ::isatty(descriptor_) != 1 && path != "/dev/null";
    if (endless || S_ISDIR(status.st_mode)) {
      ::close(descriptor_);
      fail("cannot read {}: it is a {}; give text files", name_, endless ? "device" : "folder");
    }
  }
  ~BlockReader() { ::close(descriptor_); }
  BlockReader(const BlockReader&) = delete;
  BlockReader& operator=(const BlockReader&) = delete;

  const std::string& name() const { return name_; }

  // Bytes that were read and not taken yet.
  std::string_view waiting() const { return std::string_view(block_).substr(taken_); }
  void take(std::size_t count) { taken_ += count; }
  // Of the first byte waiting.
  std::uint64_t position() const { return block_position_ + taken_; }

  // Reads on when nothing is waiting; false at the end of the file.
  bool refill() {
    if (taken_ < block_.size()) return true;
    block_position_ += block_.size();
    taken_ = 0;
    block_.clear();
    return read_more();
  }

  // Until `count` bytes wait, for the magic number; fewer at the end of the file.
  void gather(std::size_t count) {
    while (block_.size() < count && read_more()) {
    }
  }

 private:
  bool read_more() {
    const std::size_t before = block_.size();
    block_.resize(before + kSourceBytes);
    ssize_t count;
    do {
      count = ::read(descriptor_, block_.data() + before, kSourceBytes);
    } while (count < 0 && errno == EINTR);
    const int code = errno;
    block_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count < 0) fail("cannot read {}: {}", name_, std::strerror(code));
    return count > 0;
  }

  std::string name_;
  int descriptor_;
  std::string block_;
  std::size_t taken_ = 0;
  std::uint64_t block_position_ = 0;
};

class PlainBytes : public TextBytes {
 public:
  explicit PlainBytes(std::unique_ptr<BlockReader> file) : file_(std::move(file)) {}

  std::size_t read(std::span<char> out) override {
    if (!file_->refill()) return 0;
    const std::size_t count = std::min(out.size(), file_->waiting().size());
    std::memcpy(out.data(), file_->waiting().data(), count);
    file_->take(count);
    return count;
  }

  std::uint64_t file_position() const override { return file_->position(); }

 private:
  std::unique_ptr<BlockReader> file_;
};

class XzBytes : public TextBytes {
 public:
  explicit XzBytes(std::unique_ptr<BlockReader> file) : file_(std::move(file)) {
    // Concatenated: several .xz files one after the other are one text, as for the xz program.
    const lzma_ret result = lzma_stream_decoder(&stream_, kXzMemoryLimit, LZMA_CONCATENATED);
    if (result == LZMA_MEM_ERROR)
      throw LackOfMemory(fmt::format("{}: cannot unpack xz data", file_->name()));
    if (result != LZMA_OK) fail("{}: cannot start to unpack xz data", file_->name());
  }
  ~XzBytes() override { lzma_end(&stream_); }

  std::size_t read(std::span<char> out) override {
    stream_.next_out = reinterpret_cast<std::uint8_t*>(out.data());
    stream_.avail_out = out.size();
    while (!finished_ && stream_.avail_out == out.size()) {
      const bool more = file_->refill();
      const std::string_view input = file_->waiting();
      stream_.next_in = reinterpret_cast<const std::uint8_t*>(input.data());
      stream_.avail_in = input.size();
      const lzma_ret result = lzma_code(&stream_, more ? LZMA_RUN : LZMA_FINISH);
      file_->take(input.size() - stream_.avail_in);
      if (result == LZMA_STREAM_END)
        finished_ = true;
      else if (result != LZMA_OK)
        refuse(result, more);
    }
    return out.size() - stream_.avail_out;
  }

  std::uint64_t file_position() const override { return file_->position(); }

 private:
  [[noreturn]] void refuse(lzma_ret result, bool more) const {
    const std::uint64_t at = file_->position();
    if (result == LZMA_MEM_ERROR)
      throw LackOfMemory(fmt::format("{}: cannot unpack xz data", file_->name()));
    if (result == LZMA_MEMLIMIT_ERROR)
      fail(
          "{}: its xz data needs {} to unpack, more than the {} allowed; compress it again with "
          "xz -9 or below",
          file_->name(), human_bytes(lzma_memusage(&stream_)), human_bytes(kXzMemoryLimit));
    if (result == LZMA_BUF_ERROR && !more)
      fail("{}: its xz data ends too early, at byte {}; the file is truncated", file_->name(), at);
    fail("{}: its xz data is corrupt near byte {}", file_->name(), at);
  }

  std::unique_ptr<BlockReader> file_;
  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool finished_ = false;
};

class ZstdBytes : public TextBytes {
 public:
  explicit ZstdBytes(std::unique_ptr<BlockReader> file)
      : file_(std::move(file)), context_(ZSTD_createDCtx()) {
    if (context_ == nullptr)
      throw LackOfMemory(fmt::format("{}: cannot unpack zst data", file_->name()));
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kZstdWindowLog);
  }

  std::size_t read(std::span<char> out) override {
    ZSTD_outBuffer output = {out.data(), out.size(), 0};
    while (output.pos == 0) {
      const bool more = file_->refill();
      // The decoder may hold back output of bytes it has taken already, hence the call without any.
      const std::string_view input = file_->waiting();
      ZSTD_inBuffer taken = {input.data(), input.size(), 0};
      if (!more && between_frames_) return 0;
      const std::size_t result = ZSTD_decompressStream(context_.get(), &output, &taken);
      if (ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation)
        throw LackOfMemory(fmt::format("{}: cannot unpack zst data", file_->name()));
      if (ZSTD_isError(result) != 0)
        fail("{}: its zst data is corrupt near byte {}: {}", file_->name(), file_->position(),
             ZSTD_getErrorName(result));
      file_->take(taken.pos);
      between_frames_ = result == 0;
      if (!more && !between_frames_ && output.pos == 0)
        fail("{}: its zst data ends too early, at byte {}; the file is truncated", file_->name(),
             file_->position());
    }
    return output.pos;
  }

  std::uint64_t file_position() const override { return file_->position(); }

 private:
  struct FreeContext {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };

  std::unique_ptr<BlockReader> file_;
  std::unique_ptr<ZSTD_DCtx, FreeContext> context_;
  bool between_frames_ = true;
};

bool is_zstd(std::string_view start) {
  // An ordinary frame, or one to be skipped (pzstd writes those first): 0x184D2A50 to 0x184D2A5F.
  return start.starts_with("\x28\xB5\x2F\xFD"sv) ||
         (start.size() >= 4 && (static_cast<unsigned char>(start[0]) & 0xF0) == 0x50 &&
          start.substr(1, 3) == "\x2A\x4D\x18"sv);
}

}  // namespace

std::unique_ptr<TextBytes> TextBytes::open(const std::filesystem::path& path) {
  auto file = std::make_unique<BlockReader>(path);
  file->gather(6);
  const std::string_view start = file->waiting();
  if (start.starts_with("\xFD"
                        "7zXZ\0"sv))
    return std::make_unique<XzBytes>(std::move(file));
  if (is_zstd(start)) return std::make_unique<ZstdBytes>(std::move(file));
  for (const auto& [magic, kind] : {std::pair{"\x1F\x8B"sv, "gzip"}, std::pair{"BZh"sv, "bzip2"},
                                    std::pair{"PK\x03\x04"sv, "zip"}})
    if (start.starts_with(magic))
      fail("{} is a {} file; texts may be plain, .xz or .zst, so unpack it first", file->name(),
           kind);
  return std::make_unique<PlainBytes>(std::move(file));
}

}  // namespace filigree
