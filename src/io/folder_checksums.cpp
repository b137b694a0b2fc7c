#include "io/folder_checksums.h"

#include <nlohmann/json.hpp>

#include <algorithm>

#include "base/file_status.h"
#include "base/mapped_file.h"
#include "filigree/error.h"
#include "filigree/names.h"
#include "json/json.h"
#include "json/object.h"

namespace filigree {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostBlockBytes = std::int64_t{1} << 40;
constexpr const char* kFormat = "filigree checksums";
constexpr std::string_view kModelFiles[] = {
    "config.json",       "tokenizer.json",          "vocab.json",
    "merges.txt",        "generation_config.json",  "tokenizer_config.json",
    "added_tokens.json", "special_tokens_map.json", "config.yaml"};

bool is_model_file(std::string_view name) {
  return std::find(std::begin(kModelFiles), std::end(kModelFiles), name) != std::end(kModelFiles) ||
         name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json");
}

// Names come from a file: nothing outside the folder is looked at.
void require_plain_name(const std::string& name, const std::string& source) {
  require(!name.empty() && name != "." && name != ".." &&
              name.find_first_of(std::string_view("/\0", 2)) == std::string::npos,
          "{}: '{}' is no name of a file in the folder", source, printable(name));
}

std::string problem_of(const fs::path& path, const FileChecksum& stored, ChecksumDepth depth) {
  try {
    const std::optional<FileStatus> status = status_of(path);
    if (!status || status->kind != FileKind::kFile) return "is missing";
    if (status->bytes != stored.bytes)
      return fmt::format("has {} bytes and should have {}", status->bytes, stored.bytes);
    if (depth == ChecksumDepth::kSizes) return "";
    return difference(MappedFile::open(path)->bytes(), stored);
  } catch (const Error& error) {
    return fmt::format("cannot be read: {}", error.what());
  }
}

}  // namespace

std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const FolderEntry& entry : entries_of(folder))
    if (entry.name != kChecksumsFile && is_file(folder / entry.name)) names.push_back(entry.name);
  return names;
}

std::vector<std::string> model_files_in(const fs::path& folder) {
  std::vector<std::string> names = files_in(folder);
  std::erase_if(names, [](const std::string& name) { return !is_model_file(name); });
  return names;
}

void write_checksums(const fs::path& folder, const std::vector<std::string>& files,
                     const std::map<std::string, std::string>& to_come, ChecksumGrain grain) {
  nlohmann::json sums = nlohmann::json::object();
  const auto add = [&](const std::string& name, std::string_view bytes) {
    const FileChecksum sum = checksum_of(std::as_bytes(std::span(bytes)), grain);
    nlohmann::json& stored = sums[name] = {{"bytes", sum.bytes}, {"xxh64", sum.xxh64}};
    if (sum.block_bytes == 0) return;
    stored["block_bytes"] = sum.block_bytes;
    stored["blocks"] = sum.blocks;
  };
  for (const std::string& name : files) add(name, MappedFile::open(folder / name)->text());
  for (const auto& [name, bytes] : to_come) add(name, bytes);
  write_json(folder / kChecksumsFile, {{"format", kFormat}, {"version", 1}, {"files", sums}});
}

bool has_checksums(const fs::path& folder) { return is_there(folder / kChecksumsFile); }

std::map<std::string, FileChecksum> read_checksums(const fs::path& folder) {
  const JsonObject root = JsonObject::open(folder / kChecksumsFile);
  const std::string format = root.string("format");
  require(format == kFormat, "{}: the format is '{}', should be '{}'", root.source(),
          printable(format), kFormat);
  root.integer("version", 1, 1);
  const JsonObject files = root.object("files");
  std::map<std::string, FileChecksum> sums;
  for (const std::string& name : files.keys()) {
    require_plain_name(name, root.source());
    const JsonObject stored = files.object(name);
    FileChecksum& sum = sums[name];
    sum.bytes = static_cast<std::uint64_t>(stored.integer("bytes", 0));
    sum.xxh64 = stored.string("xxh64");
    if (!stored.has("blocks")) continue;
    sum.block_bytes = static_cast<std::uint64_t>(stored.integer("block_bytes", 1, kMostBlockBytes));
    sum.blocks = stored.string("blocks");
  }
  return sums;
}

std::vector<CheckedFile> check_files(const fs::path& folder, ChecksumDepth depth) {
  std::vector<CheckedFile> checked;
  for (const auto& [name, sum] : read_checksums(folder))
    checked.push_back({name, sum.bytes, problem_of(folder / name, sum, depth)});
  return checked;
}

void fail_damaged(const fs::path& file, const std::string& problem) {
  fail(
      "'{}' {}: it is damaged, or was changed after it was written; if that was on purpose, remove "
      "{} beside it",
      printable(file.string(), 400), problem, kChecksumsFile);
}

void require_whole(const fs::path& folder, ChecksumDepth depth) {
  for (const CheckedFile& file : check_files(folder, depth))
    if (!file.problem.empty()) fail_damaged(folder / file.name, file.problem);
}

}  // namespace filigree
