// Whether the files of folders are still what was written: models, transcoders, runs with their
// checkpoints and controls, token shards.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "io/folder_checksums.h"
#include "study/json.h"

namespace filigree::study {

struct VerificationRequest {
  std::vector<std::string> folders = {};  // or names of models and transcoders
  // First writes the checksums of a model that came without, or was changed on purpose.
  bool write = false;
};

struct VerifiedFolder {
  std::string folder;
  bool checksums = false;          // there are some
  std::vector<CheckedFile> files;  // that they name
  std::string problem;             // that is not one file's

  bool damaged() const;
};

struct Verification {
  std::vector<VerifiedFolder> folders;  // those asked for, and those inside them

  bool damaged() const;
  bool checked_any() const;
};

Verification verify_folders(const VerificationRequest& request);

Json to_json(const Verification& verification);

}  // namespace filigree::study
