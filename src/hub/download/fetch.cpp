#include "hub/download/fetch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "base/atomic_file.h"
#include "base/file_status.h"
#include "base/folders.h"
#include "base/mapped_file.h"
#include "base/named_lock.h"
#include "base/output_folder.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "hub/cache.h"
#include "hub/download/blob_download.h"
#include "hub/listing.h"

namespace filigree::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxListingBytes = std::size_t{64} << 20;

FetchWatcher with_everything(FetchWatcher watcher) {
  if (!watcher.begin) watcher.begin = [](std::uint64_t, std::uint64_t) {};
  if (!watcher.at) watcher.at = [](std::uint64_t, const std::string&) {};
  if (!watcher.note) watcher.note = [](const std::string&) {};
  if (!watcher.look_up) watcher.look_up = [] {};
  return watcher;
}

class Fetch {
 public:
  Fetch(HubName name, const fs::path& cache, const HubSettings& settings, FetchWatcher watcher)
      : name_(std::move(name)),
        watcher_(with_everything(std::move(watcher))),
        client_(settings, watcher_.look_up, watcher_.note),
        cache_(cache),
        repository_(cache / folder_of_repository(name_.repository)),
        locks_(cache / ".locks" / folder_of_repository(name_.repository)) {}

  Fetched run() {
    const std::string source = fmt::format("the listing of '{}'", name_.text());
    listing_ = parse_listing(client_.text(listing_path(), kMaxListingBytes, name_), source);
    NeededFiles needed = needed_files(listing_, name_.file, name_.text());
    done_ = {name_, listing_.commit, repository_ / "snapshots" / listing_.commit, {}, 0};
    if (!needed.index.empty()) add_shards(needed);
    std::vector<RemoteFile> files;
    for (const std::string& file : needed.files)
      if (file != needed.index) files.push_back(head_of(file));
    open();
    count(files);
    for (const RemoteFile& file : files) bring(file);
    write_ref();
    return std::move(done_);
  }

 private:
  std::string listing_path() const {
    return fmt::format("/api/models/{}/revision/{}?blobs=true",
                       percent_encoded(name_.repository, Slashes::kKept),
                       percent_encoded(name_.revision, Slashes::kEscaped));
  }

  // The index is needed to know what else is.
  void add_shards(NeededFiles& needed) {
    open();
    const RemoteFile index = head_of(needed.index);
    bring(index);
    const fs::path path = done_.folder / index.name;
    for (const std::string& shard :
         shards_of_index(MappedFile::open(path)->text(), path.string(), listing_))
      needed.files.push_back(shard);
  }

  RemoteFile head_of(const std::string& file) {
    const ListedFile* const listed = listing_.find(file);
    RemoteFile remote;
    remote.name = file;
    remote.path =
        fmt::format("/{}/resolve/{}/{}", percent_encoded(name_.repository, Slashes::kKept),
                    listing_.commit, percent_encoded(file, Slashes::kKept));
    HubName one = name_;
    one.file = file;
    const ResponseHead head = client_.head(remote.path, one);
    const std::optional<std::string> etag = head.etag();
    require(etag.has_value(), "'{}': the server gives no ETag, so its content has no name",
            one.text());
    remote.etag = *etag;
    const std::string commit = head.header("x-repo-commit").value_or(listing_.commit);
    require(commit == listing_.commit,
            "'{}': the server answers for the commit '{}', asked for '{}'", one.text(),
            printable(commit), listing_.commit);
    remote.bytes = head.bytes();
    if (listed == nullptr) return remote;
    remote.sha256 = listed->sha256;
    if (!remote.bytes) remote.bytes = listed->bytes;
    require(!listed->bytes || *listed->bytes == *remote.bytes,
            "'{}': the listing has {} bytes, the file's head {}", one.text(),
            listed->bytes.value_or(0), *remote.bytes);
    return remote;
  }

  // The cache, once something is to be written: below it no link is followed. It is not locked as a
  // whole, since several fetches into it go on at once, each of its files.
  void open() {
    if (output_) return;
    output_.emplace(cache_, OutputFolder::Users::kMany);
    blobs_.emplace(folder_to_write(repository_ / "blobs", MissingFolders::kMake).folder);
  }

  bool blob_is_there(const RemoteFile& file) const {
    // A blob may be a link to a store that several caches share.
    const std::optional<FileStatus> status = status_of(repository_ / "blobs" / file.etag);
    return status && status->kind == FileKind::kFile &&
           (!file.bytes || status->bytes == *file.bytes);
  }

  void count(const std::vector<RemoteFile>& files) {
    std::uint64_t all = received_, there = received_;
    for (const RemoteFile& file : files) {
      all += file.bytes.value_or(0);
      if (blob_is_there(file))
        there += file.bytes.value_or(0);
      else if (const auto begun = blobs_->status_of(file.etag + ".incomplete"))
        there += std::min(begun->bytes, file.bytes.value_or(0));
    }
    watcher_.begin(all, there);
  }

  void bring(const RemoteFile& file) {
    FetchedFile fetched = {.name = file.name, .bytes = file.bytes.value_or(0), .checksum = {}};
    if (!blob_is_there(file)) {
      const NamedLock lock = take_lock(file);
      if (!blob_is_there(file)) {
        const auto progress = [&](std::uint64_t bytes) {
          watcher_.look_up();
          watcher_.at(received_ + bytes, file.name);
        };
        const Downloaded downloaded = download_blob(client_, name_, file, *blobs_, progress);
        fetched.downloaded = true;
        fetched.bytes = downloaded.bytes;
        fetched.checksum = downloaded.checksum;
        done_.received += downloaded.received;
      }
    }
    if (!fetched.downloaded) fetched.bytes = bytes_of_file(repository_ / "blobs" / file.etag);
    link(file);
    received_ += fetched.bytes;
    watcher_.at(received_, file.name);
    done_.files.push_back(std::move(fetched));
  }

  NamedLock take_lock(const RemoteFile& file) {
    if (!lock_folder_) lock_folder_.emplace(folder_to_write(locks_, MissingFolders::kMake).folder);
    constexpr auto kBetweenTries = std::chrono::milliseconds(100);
    for (bool told = false;; told = true) {
      if (std::optional<NamedLock> lock =
              NamedLock::try_to_take(*lock_folder_, file.etag + ".lock"))
        return std::move(*lock);
      if (!told)
        watcher_.note(fmt::format("'{}' is being fetched by another program; waiting for it",
                                  printable(file.name, 200)));
      watcher_.look_up();
      std::this_thread::sleep_for(kBetweenTries);
    }
  }

  // Where programs find the file, under its name.
  void link(const RemoteFile& file) const {
    const fs::path place = done_.folder / file.name;
    const OpenFolder folder = folder_to_write(place.parent_path(), MissingFolders::kMake).folder;
    const std::string name = place.filename(), target = blob_link(file.name, file.etag);
    while (!folder.make_link(name, target)) {
      if (folder.link_target(name) == target) return;
      // Where there were no links, huggingface_hub put a copy.
      const std::optional<FileStatus> there = folder.status_of(name);
      if (there && there->kind == FileKind::kFile && file.bytes && there->bytes == *file.bytes)
        return;
      remove_file(place);
    }
  }

  // Last: a revision that the cache knows is there as a whole.
  void write_ref() const {
    if (is_commit(name_.revision)) return;
    const fs::path ref = repository_ / "refs" / name_.revision;
    if (is_file(ref) && MappedFile::open(ref)->text() == listing_.commit) return;
    make_folders(ref.parent_path());
    write_file_atomically(ref, listing_.commit);
  }

  HubName name_;
  FetchWatcher watcher_;
  HubClient client_;
  fs::path cache_, repository_, locks_;
  Listing listing_;
  std::optional<OutputFolder> output_;
  std::optional<OpenFolder> blobs_, lock_folder_;
  Fetched done_;
  std::uint64_t received_ = 0;  // bytes of the files that are there now
};

}  // namespace

Fetched fetch(const HubName& name, const fs::path& cache, const HubSettings& settings,
              const FetchWatcher& watcher) {
  return Fetch(name, cache, settings, watcher).run();
}

}  // namespace filigree::hub
