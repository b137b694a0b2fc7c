#include <algorithm>

#include "base/file_status.h"
#include "base/output_folder.h"
#include "filigree/data.h"
#include "filigree/error.h"
#include "filigree/model_study.h"
#include "filigree/names.h"
#include "filigree/study.h"
#include "filigree/train.h"
#include "hub/cache.h"
#include "io/folder_checksums.h"

namespace filigree::study {
namespace {

namespace fs = std::filesystem;

void verify_model(const fs::path& folder, VerifiedFolder& result) {
  result.checksums = has_checksums(folder);
  if (result.checksums) result.files = check_files(folder, ChecksumDepth::kContents);
}

// Shards have their checksums in their index, and in themselves; the index has those of the
// tokenizer beside them too.
void verify_shards(const fs::path& folder, VerifiedFolder& result) {
  result.checksums = true;
  const TokenShards shards = TokenShards::open(folder, ShardCheck::kContents);
  for (const SplitEntry& split : shards.index().splits)
    for (const ShardEntry& shard : split.shards)
      result.files.push_back({shard.file, bytes_of_file(folder / shard.file), ""});
  for (const TokenizerFileEntry& file : shards.index().tokenizer_files)
    result.files.push_back({file.file, file.bytes, ""});
}

VerifiedFolder verify(const fs::path& folder) {
  VerifiedFolder result;
  result.folder = folder.string();
  try {
    verify_model(folder, result);
    if (is_there(folder / kShardIndexFile)) verify_shards(folder, result);
  } catch (const Error& error) {
    result.problem = error.what();
  }
  return result;
}

// A run that has not ended is no model yet: then its checkpoints are all there is.
void verify_with_inside(const fs::path& folder, std::vector<VerifiedFolder>& results) {
  const std::vector<fs::path> checkpoints = RunFolder::checkpoints_in(folder);
  VerifiedFolder here = verify(folder);
  if (here.checksums || checkpoints.empty() || is_there(folder / "config.json"))
    results.push_back(std::move(here));
  for (const fs::path& checkpoint : checkpoints) results.push_back(verify(checkpoint));
  if (is_folder(folder / "control")) verify_with_inside(folder / "control", results);
}

}  // namespace

bool VerifiedFolder::damaged() const {
  return !problem.empty() || std::any_of(files.begin(), files.end(), [](const CheckedFile& file) {
    return !file.problem.empty();
  });
}

bool Verification::damaged() const {
  return std::any_of(folders.begin(), folders.end(),
                     [](const VerifiedFolder& folder) { return folder.damaged(); });
}

bool Verification::checked_any() const {
  return std::any_of(folders.begin(), folders.end(),
                     [](const VerifiedFolder& folder) { return folder.checksums; });
}

Verification run(const VerificationRequest& request, Models, const Context&) {
  if (request.folders.empty()) throw RequestError("there is no folder to verify");
  Verification result;
  for (const std::string& name : request.folders) {
    const auto features = find_named_model(name) ? std::nullopt : find_named_features(name);
    const fs::path folder = is_folder(name) ? fs::path(name)
                            : features      ? *features
                                            : model_folder(name);
    if (request.write) {
      // Others' folders, of which every file is named by its checksum.
      require(hub::find_in_cache(name) != folder,
              "'{}' lies in the cache of the Hugging Face hub, which is not written to; convert it "
              "into a folder of your own",
              printable(name));
      require(is_folder(folder), "'{}' is no folder, so there is nowhere to write {}",
              printable(folder.string(), 400), kChecksumsFile);
      require(!is_there(folder / kShardIndexFile),
              "'{}' holds token shards, which have their checksums in {}; prepare them again where "
              "they were changed",
              printable(folder.string(), 400), kShardIndexFile);
      const OutputFolder out(folder);
      const std::vector<std::string> files = model_files_in(folder);
      require(!files.empty(), "'{}' holds no files of a model", printable(folder.string(), 400));
      // A model is read whole, a transcoder by the row.
      write_checksums(
          folder, files, {},
          is_there(folder / "config.json") ? ChecksumGrain::kFiles : ChecksumGrain::kBlocks);
    }
    verify_with_inside(folder, result.folders);
  }
  return result;
}

Json to_json(const Verification& verification) {
  Json folders = Json::array();
  for (const VerifiedFolder& folder : verification.folders) {
    Json files = Json::array();
    for (const CheckedFile& file : folder.files)
      files.push_back({{"file", file.name},
                       {"bytes", file.bytes},
                       {"problem", file.problem.empty() ? Json() : Json(file.problem)}});
    folders.push_back({{"folder", folder.folder},
                       {"checksums", folder.checksums},
                       {"damaged", folder.damaged()},
                       {"problem", folder.problem.empty() ? Json() : Json(folder.problem)},
                       {"files", files}});
  }
  return {{"damaged", verification.damaged()}, {"folders", folders}};
}

}  // namespace filigree::study
