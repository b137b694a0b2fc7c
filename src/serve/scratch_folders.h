// Folders for what is made on the way to an answer. No answer may hold a path of this machine, and
// errors of the file system do: they are told without it.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "base/scratch_folder.h"

namespace filigree::serve {

// Throws Refusal when the system gives none.
std::shared_ptr<const ScratchFolder> scratch_folder();

// Runs `work`; an Error that names something in the folder becomes a Refusal that says what is
// wrong and not where.
void hiding(const ScratchFolder& folder, const std::function<void()>& work);

}  // namespace filigree::serve
