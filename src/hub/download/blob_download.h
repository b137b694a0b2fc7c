// One file of a repository into the blobs of the cache.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/open_folder.h"
#include "hub/download/hub_client.h"

namespace filigree::hub {

// A file as its head tells of it.
struct RemoteFile {
  std::string name;  // in the repository
  std::string path;  // behind the endpoint
  std::string etag;  // names the blob
  std::string commit;
  std::optional<std::uint64_t> bytes;
  std::string sha256;  // as the listing has it, or ""
};

struct Downloaded {
  std::uint64_t bytes = 0, received = 0;
  std::string checksum;  // "sha256", "git" or ""
};

// Fetches the file into `blobs` under its ETag; the caller has the lock. What an earlier attempt
// left as ETAG.incomplete is continued. `progress` is given the bytes that are there. Throws Error,
// and leaves what arrived for the next attempt unless it is wrong.
Downloaded download_blob(HubClient& client, const HubName& name, const RemoteFile& file,
                         const OpenFolder& blobs,
                         const std::function<void(std::uint64_t)>& progress);

}  // namespace filigree::hub
