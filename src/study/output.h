// The folder that a study writes, opened before the work: "in use" is then known at once, and what
// is found in the folder stays as it was found.
#pragma once

#include <filesystem>
#include <memory>

#include "base/output_folder.h"
#include "filigree/study.h"

namespace filigree::study {

// Makes, opens and locks it (base/output_folder.h) on the process that writes; null on the others.
// Throws Error, on all of them, when that cannot be. Keep it until everything is written.
[[nodiscard]] std::unique_ptr<OutputFolder> open_output(const std::filesystem::path& folder,
                                                        const Context& context);

}  // namespace filigree::study
