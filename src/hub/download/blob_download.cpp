#include "hub/download/blob_download.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/growing_file.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "hub/content_hash.h"

namespace filigree::hub {
namespace {

// Of a file whose size nobody tells: configurations and tokenizers, packed on their way.
constexpr std::uint64_t kMaxUntoldBytes = std::uint64_t{1} << 30;
// What must stay free, for other programs and for the names in the cache.
constexpr std::uint64_t kSpareBytes = std::uint64_t{1} << 20;

class BlobDownload {
 public:
  BlobDownload(HubClient& client, const HubName& name, const RemoteFile& file,
               const OpenFolder& blobs, const std::function<void(std::uint64_t)>& progress)
      : client_(client),
        name_(name),
        file_(file),
        blobs_(blobs),
        progress_(progress),
        growing_(blobs, file.etag + ".incomplete"),
        resumed_(growing_.bytes() > 0) {}

  Downloaded run() {
    require_room();
    while (true) {
      std::uint64_t before = growing_.bytes();
      const auto got_further = [&] {
        return growing_.bytes() > std::exchange(before, growing_.bytes());
      };
      client_.persevere([this] { receive_rest(); }, got_further);
      const std::string problem = compare_checksums();
      if (problem.empty()) break;
      if (!std::exchange(resumed_, false)) discard(problem);
      // What an earlier attempt left may be what is wrong.
      growing_.restart();
    }
    const Downloaded done = {growing_.bytes(), received_, compared_};
    growing_.commit_as(file_.etag);
    return done;
  }

 private:
  std::string shown() const { return printable(file_.name, 200); }

  void require_room() const {
    if (!file_.bytes || *file_.bytes <= growing_.bytes()) return;
    const std::uint64_t needed = *file_.bytes - growing_.bytes() + kSpareBytes;
    const std::uint64_t there = free_bytes(blobs_);
    require(needed <= there, "'{}' needs {} more in '{}', which has {} left", shown(),
            human_bytes(needed), printable(blobs_.path().string(), 400), human_bytes(there));
  }

  // What was received is wrong and must not be continued.
  [[noreturn]] void discard(const std::string& why) {
    growing_.remove();
    fail("'{}' {}; nothing of it was kept, so fetch it again", shown(), why);
  }

  void receive_rest() {
    if (file_.bytes && growing_.bytes() == *file_.bytes) return;
    if (file_.bytes && growing_.bytes() > *file_.bytes) growing_.restart();
    client_.content(
        file_.path, growing_.bytes(), name_,
        [this](const HubAnswer& answer) { return begin(answer); },
        [this](std::string_view piece) { take(piece); });
    // An answer may end early without a broken connection.
    if (file_.bytes && growing_.bytes() < *file_.bytes)
      throw Disconnected(
          fmt::format("'{}' ended after {} of {} bytes", shown(), growing_.bytes(), *file_.bytes));
  }

  // Whether the content that follows is what is missing.
  bool begin(const HubAnswer& answer) {
    require_same(answer.hub);
    switch (answer.last.status()) {
      case 206: begin_part(answer.last); return true;
      case 416: return nothing_follows(answer.last);
      default:
        // Servers need not know ranges: then everything comes again.
        if (growing_.bytes() > 0) growing_.restart();
        return true;
    }
  }

  // Between the head and the content the file may have become another one.
  void require_same(const ResponseHead& head) const {
    const std::optional<std::string> etag = head.etag();
    require(
        !etag || *etag == file_.etag,
        "'{}' was changed on the server while it was fetched (ETag '{}', before '{}'); fetch it "
        "again",
        shown(), etag.value_or(""), file_.etag);
  }

  void begin_part(const ResponseHead& head) const {
    const std::optional<ContentRange> range =
        parse_content_range(head.header("content-range").value_or(""));
    const bool fits = range && range->satisfied && range->first == growing_.bytes() &&
                      (!range->total || !file_.bytes || *range->total == *file_.bytes);
    require(fits, "'{}': asked for the bytes from {} on, and the server sends '{}'", shown(),
            growing_.bytes(), printable(head.header("content-range").value_or("no range")));
  }

  // False: there is nothing to receive, because all of it is there.
  bool nothing_follows(const ResponseHead& head) {
    const std::optional<ContentRange> range =
        parse_content_range(head.header("content-range").value_or(""));
    if (range && range->total && *range->total == growing_.bytes()) return false;
    growing_.restart();
    throw Disconnected(fmt::format("'{}' was continued where the server has nothing", shown()));
  }

  void take(std::string_view piece) {
    const std::uint64_t most = file_.bytes.value_or(kMaxUntoldBytes);
    if (growing_.bytes() + piece.size() > most)
      discard(fmt::format("has more than the {} bytes that it should have", most));
    growing_.append(piece);
    received_ += piece.size();
    progress_(growing_.bytes());
  }

  std::string digest(ContentHash::Kind kind) {
    ContentHash hash(kind, growing_.bytes());
    std::vector<char> block(std::size_t{1} << 20);
    for (std::uint64_t at = 0; at < growing_.bytes();) {
      const std::size_t count =
          static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), growing_.bytes() - at));
      growing_.read(at, std::span(block).first(count));
      hash.add({block.data(), count});
      at += count;
      progress_(growing_.bytes());
    }
    return hash.finish();
  }

  // "" or what is wrong.
  std::string compare(ContentHash::Kind kind, const std::string& expected) {
    const std::string found = digest(kind);
    const bool is_sha256 = kind == ContentHash::Kind::kSha256;
    if (found != expected)
      return fmt::format("has the {} {}, should have {}", is_sha256 ? "SHA-256" : "git checksum",
                         found, expected);
    compared_ = is_sha256 ? "sha256" : "git";
    return "";
  }

  // Of what is on the disk with the ETag and with the listing, which may be each other's.
  std::string compare_checksums() {
    const std::optional<ContentHash::Kind> kind = ContentHash::kind_of(file_.etag);
    std::string problem = kind ? compare(*kind, file_.etag) : "";
    if (problem.empty() && !file_.sha256.empty() && file_.sha256 != file_.etag)
      problem = compare(ContentHash::Kind::kSha256, file_.sha256);
    return problem;
  }

  HubClient& client_;
  const HubName& name_;
  const RemoteFile& file_;
  const OpenFolder& blobs_;
  const std::function<void(std::uint64_t)>& progress_;
  GrowingFile growing_;
  bool resumed_;  // it began with what an earlier attempt left
  std::uint64_t received_ = 0;
  std::string compared_;
};

}  // namespace

Downloaded download_blob(HubClient& client, const HubName& name, const RemoteFile& file,
                         const OpenFolder& blobs,
                         const std::function<void(std::uint64_t)>& progress) {
  return BlobDownload(client, name, file, blobs, progress).run();
}

}  // namespace filigree::hub
