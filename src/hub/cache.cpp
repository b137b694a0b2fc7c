#include "hub/cache.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/file_status.h"
#include "base/mapped_file.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "io/gguf.h"

namespace filigree::hub {
namespace {

namespace fs = std::filesystem;

// Nothing where it is not set or empty.
std::optional<fs::path> folder_of_variable(const char* variable) {
  const char* const value = std::getenv(variable);
  if (value == nullptr || *value == '\0') return std::nullopt;
  const std::string path = value;
  if (path != "~" && !path.starts_with("~/")) return path;
  const char* const home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return path;
  return fs::path(home) / path.substr(std::min<std::size_t>(path.size(), 2));
}

std::vector<std::string> gguf_files(const fs::path& folder) {
  std::vector<std::string> files;
  for (const FolderEntry& entry : entries_of(folder))
    if (has_gguf_ending(entry.name) && is_file(folder / entry.name)) files.push_back(entry.name);
  return files;
}

// A file of a few bytes that another program may have written.
std::string text_of_ref(const fs::path& ref) {
  constexpr std::uint64_t kMaxBytes = 256;
  require(bytes_of_file(ref) <= kMaxBytes, "'{}' should hold a commit and has {} bytes",
          printable(ref.string(), 400), bytes_of_file(ref));
  std::string text(MappedFile::open(ref)->text());
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
    text.pop_back();
  return text;
}

void add_revisions(const fs::path& folder, const std::string& before,
                   std::vector<std::string>& revisions) {
  constexpr std::size_t kMost = 20, kMaxNameBytes = 200;
  if (!is_folder(folder) || before.size() > kMaxNameBytes) return;
  for (const FolderEntry& entry : entries_of(folder)) {
    if (revisions.size() >= kMost) return;
    if (entry.kind == FileKind::kFolder)
      add_revisions(folder / entry.name, before + entry.name + "/", revisions);
    else if (entry.kind == FileKind::kFile)
      revisions.push_back(before + entry.name);
  }
}

}  // namespace

std::optional<fs::path> cache_folder_if_any() {
  for (const char* variable : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (const auto folder = folder_of_variable(variable)) return *folder;
  if (const auto home = folder_of_variable("HF_HOME")) return *home / "hub";
  if (const auto caches = folder_of_variable("XDG_CACHE_HOME"))
    return *caches / "huggingface" / "hub";
  if (const auto home = folder_of_variable("HOME")) return *home / ".cache" / "huggingface" / "hub";
  return std::nullopt;
}

fs::path cache_folder() {
  const std::optional<fs::path> folder = cache_folder_if_any();
  require(folder.has_value(), "there is no home folder to keep models in; set HF_HUB_CACHE");
  return *folder;
}

std::string folder_of_repository(const std::string& repository) {
  std::string folder = "models--" + repository;
  if (const std::size_t slash = folder.find('/'); slash != std::string::npos)
    folder.replace(slash, 1, "--");
  return folder;
}

std::string blob_link(const std::string& file, const std::string& etag) {
  std::string up = "../../";
  for (const char c : file)
    if (c == '/') up += "../";
  return up + "blobs/" + etag;
}

std::optional<std::string> cached_commit(const fs::path& cache, const HubName& name) {
  if (is_commit(name.revision)) return name.revision;
  const fs::path ref = cache / folder_of_repository(name.repository) / "refs" / name.revision;
  if (!is_file(ref)) return std::nullopt;
  std::string commit = text_of_ref(ref);
  require(is_commit(commit), "'{}' should hold a commit of 40 digits and holds '{}'",
          printable(ref.string(), 400), printable(commit));
  return commit;
}

bool has_weights(const fs::path& folder) {
  constexpr std::array kFiles = {"model.safetensors", "model.safetensors.index.json",
                                 "model-i8.safetensors", "pytorch_model.bin",
                                 "pytorch_model.bin.index.json"};
  return std::any_of(kFiles.begin(), kFiles.end(),
                     [&](const char* file) { return is_file(folder / file); });
}

std::optional<fs::path> find_in_cache(const fs::path& cache, const HubName& name) {
  const std::optional<std::string> commit = cached_commit(cache, name);
  if (!commit) return std::nullopt;
  const fs::path snapshot = cache / folder_of_repository(name.repository) / "snapshots" / *commit;
  if (!is_folder(snapshot)) return std::nullopt;
  if (!name.file.empty()) {
    if (!is_file(snapshot / name.file)) return std::nullopt;
    return snapshot / name.file;
  }
  if (is_file(snapshot / "config.json") && has_weights(snapshot)) return snapshot;
  const std::vector<std::string> files = gguf_files(snapshot);
  if (files.size() > 1) {
    constexpr std::size_t kShown = 12;
    std::vector<std::string> shown;
    for (std::size_t i = 0; i < std::min(files.size(), kShown); ++i)
      shown.push_back(printable(files[i]));
    fail("model '{}' has several GGUF files in the cache; name one, as {}:{}: {}", name.text(),
         name.text(), shown[0], join(shown, ", "));
  }
  return files.empty() ? snapshot : snapshot / files[0];
}

std::optional<fs::path> find_in_cache(const std::string& text) {
  const std::optional<HubName> name = hub_name_if_any(text);
  if (!name) return std::nullopt;
  const std::optional<fs::path> cache = cache_folder_if_any();
  return cache ? find_in_cache(*cache, *name) : std::nullopt;
}

std::vector<std::string> cached_revisions(const fs::path& cache, const std::string& repository) {
  std::vector<std::string> revisions;
  add_revisions(cache / folder_of_repository(repository) / "refs", "", revisions);
  return revisions;
}

}  // namespace filigree::hub
