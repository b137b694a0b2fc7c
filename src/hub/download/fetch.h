// A model of the hub into the cache of this machine, where every program that knows
// huggingface_hub's layout finds it. Only what a model needs is fetched, and a file that is there
// is kept. Each file is locked while it is fetched, goes on where an earlier attempt ended, and
// gets its name once its size and checksum are right; the revision is written last. Whatever ends a
// fetch leaves nothing that looks whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "hub/download/hub_client.h"
#include "hub/hub_name.h"

namespace filigree::hub {

struct FetchedFile {
  std::string name;
  std::uint64_t bytes = 0;
  bool downloaded = false;  // else it was there
  std::string checksum;     // what was compared: "sha256", "git", or "" where the hub gives none
};

struct Fetched {
  HubName name;
  std::string commit;
  std::filesystem::path folder;  // of the snapshot
  std::vector<FetchedFile> files;
  std::uint64_t received = 0;  // bytes that came over the network, of files
};

// Each may be empty.
struct FetchWatcher {
  // Bytes of all files, and those that are there before it begins.
  std::function<void(std::uint64_t bytes, std::uint64_t there)> begin = {};
  std::function<void(std::uint64_t bytes, const std::string& file)> at = {};
  std::function<void(const std::string& sentence)> note = {};
  // Called at least once a second; what it throws ends the fetch.
  std::function<void()> look_up = {};
};

// Throws Error for what cannot be had, and says why and what would help.
Fetched fetch(const HubName& name, const std::filesystem::path& cache, const HubSettings& settings,
              const FetchWatcher& watcher = {});

}  // namespace filigree::hub
