// Models for the tests of commands.
#pragma once

#include <filesystem>
#include <string>

#include "base/scratch_folder.h"
#include "support/model_folder.h"

namespace filigree::cli {

inline std::filesystem::path golden(const std::string& name) { return golden_folder() / name; }

}  // namespace filigree::cli
