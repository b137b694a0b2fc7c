// checksums.json: sizes and checksums of the files of a folder, so that what was stored is known to
// be what is read. docs/file_formats.md describes it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "filigree/weights.h"
#include "io/stored_checksums.h"

namespace filigree {

inline constexpr const char* kChecksumsFile = "checksums.json";

// The names of the regular files of a folder but checksums.json, sorted.
std::vector<std::string> files_in(const std::filesystem::path& folder);
// Of those, what a model or a transcoder consists of: configuration, weights, tokenizer.
std::vector<std::string> model_files_in(const std::filesystem::path& folder);

// Reads each of the files and writes checksums.json. `to_come` are the names and contents of files
// that will be written after it: where one of them makes the folder what it is, that one is last.
void write_checksums(const std::filesystem::path& folder, const std::vector<std::string>& files,
                     const std::map<std::string, std::string>& to_come = {},
                     ChecksumGrain grain = ChecksumGrain::kFiles);

bool has_checksums(const std::filesystem::path& folder);

// By the files' names. Throws Error when checksums.json cannot be read.
std::map<std::string, FileChecksum> read_checksums(const std::filesystem::path& folder);

// What became of the files that checksums.json names. Throws Error when that one cannot be read.
std::vector<CheckedFile> check_files(const std::filesystem::path& folder, ChecksumDepth depth);

// The Error for a file that is not as it was: `problem` is what differs, "has the checksum ...".
[[noreturn]] void fail_damaged(const std::filesystem::path& file, const std::string& problem);

// Throws it for the first of them that has a problem.
void require_whole(const std::filesystem::path& folder, ChecksumDepth depth);

}  // namespace filigree
