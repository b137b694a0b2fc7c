// Folders and names whose changes are on the disk, so that a power cut takes none of them back.
#pragma once

#include <filesystem>

namespace filigree {

// Waits until the entries of the folder (files made, renamed, removed) are on the disk. Throws
// Error when they cannot be written; a file system that cannot flush a folder at all is no error.
void flush_folder(const std::filesystem::path& folder);

// Makes the folder and those above it that are missing, and flushes each one's entry. Throws Error
// when one cannot be made, or is there and is no folder, or is a link inside an OutputFolder. What
// a command writes starts with an OutputFolder (output_folder.h); this is for what lies below it.
void make_folders(const std::filesystem::path& folder);

// Removes a file, or a link and not what it names. False when it was not there; throws Error when
// it cannot be removed.
bool remove_file(const std::filesystem::path& file);

}  // namespace filigree
