// The cache of the Hugging Face hub on this machine, as huggingface_hub lays it out and other
// programs share it:
//
//   models--ORG--NAME/refs/main                 the commit that the revision had when it was
//   fetched models--ORG--NAME/snapshots/COMMIT/FILE     links to ../../blobs/ETAG
//   models--ORG--NAME/blobs/ETAG                contents, by checksum
//   .locks/models--ORG--NAME/ETAG.lock          who downloads a blob
//
// Nothing here asks the network.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "hub/hub_name.h"

namespace filigree::hub {

// HF_HUB_CACHE, else HUGGINGFACE_HUB_CACHE, else hub/ of HF_HOME, else huggingface/hub/ of
// XDG_CACHE_HOME, else ~/.cache/huggingface/hub. "~/" at the beginning is the home folder, and an
// empty variable is none. Throws Error where none is set and there is no home folder.
std::filesystem::path cache_folder();
std::optional<std::filesystem::path> cache_folder_if_any();

// "models--org--name".
std::string folder_of_repository(const std::string& repository);

// Where a file of a snapshot is found in the blobs: "../../blobs/ETAG" with a step up for each
// folder of the file's name.
std::string blob_link(const std::string& file, const std::string& etag);

// The commit that a revision had when it was fetched, or the revision itself where it is a commit;
// nothing where it was not. Throws Error for what is no commit.
std::optional<std::string> cached_commit(const std::filesystem::path& cache, const HubName& name);

// What is opened of a model in the cache: its snapshot, where that has config.json with weights
// beside it; the file that the name asks for; or the only GGUF file. A snapshot with none of these
// is given as it is: it may have what else is looked for, such as a tokenizer. Nothing where the
// repository, the revision or the file is not in the cache. Throws Error where several GGUF files
// are there and none is named.
std::optional<std::filesystem::path> find_in_cache(const std::filesystem::path& cache,
                                                   const HubName& name);
// Nothing for what is no name of the hub, and where there is no cache.
std::optional<std::filesystem::path> find_in_cache(const std::string& name);

// Whether a folder has what the weights of a model are read from, as fetch() brings them.
bool has_weights(const std::filesystem::path& folder);

// The revisions of a repository that the cache knows, for messages.
std::vector<std::string> cached_revisions(const std::filesystem::path& cache,
                                          const std::string& repository);

}  // namespace filigree::hub
