// JSON documents from files and memory, within limits (limits.h).
//
// The text is untrusted: its size is checked before it is read, and its depth and number of values
// while it is read, so that neither the stack nor the memory can be exhausted. Every Error names
// the file and the byte position, what was found and what would be right (events.h says what is
// refused). A key that occurs twice in an object is refused too: Python's reader keeps the last,
// others the first, and which one was meant cannot be known.
#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>
#include <string_view>

#include "json/json_limits.h"

namespace filigree {

// `source` is the file name that messages carry.
nlohmann::json parse_json(std::string_view text, const std::string& source,
                          const JsonLimits& limits = {});
nlohmann::json read_json(const std::filesystem::path& path, const JsonLimits& limits = {});

// Replaces the file atomically; two spaces of indent, sorted keys and a final newline, as
// transformers writes its configurations.
void write_json(const std::filesystem::path& path, const nlohmann::json& value);
// What write_json writes.
std::string json_text(const std::filesystem::path& path, const nlohmann::json& value);

}  // namespace filigree
