// Small text helpers shared by error messages and the command line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace filigree {

// Number of insertions, deletions and substitutions between two names.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The `count` candidates nearest to `name`, nearest first; ties keep the candidates' order. Only
// the first 256 bytes of a name count.
std::vector<std::string> nearest_names(std::string_view name,
                                       const std::vector<std::string>& candidates,
                                       std::size_t count);

// "a, b, c", with ", " as separator. Without a template to compile, which is why not fmt::join().
std::string join(std::span<const std::string> parts, std::string_view separator);

// "12.3 MB"; decimal units.
std::string human_bytes(std::uint64_t bytes);

// "0.0583 %" of a share of 0.000583; "100 %" from 99.95 on.
std::string percent(double share);

// "124,439,808".
std::string with_thousands(std::uint64_t value);

// "1 prompt", "1,024 prompts": the plural of a noun that takes an s.
std::string counted(std::uint64_t count, std::string_view noun);

// `text` with control characters (those that turn the direction of writing among them) and invalid
// UTF-8 written as \xNN; only the whole characters
// within its first `limit` bytes, "..." standing for the rest. Safe inside a message about
// untrusted input.
std::string printable(std::string_view text, std::size_t limit = 80);

// All of `text` as it may be sent to a terminal: line breaks and tabs stay, everything else that
// printable() rewrites is rewritten.
std::string terminal_text(std::string_view text);
// The same for JSON, which stays the same document: \u009b stands for what a terminal may obey.
std::string terminal_json(std::string_view text);

}  // namespace filigree
