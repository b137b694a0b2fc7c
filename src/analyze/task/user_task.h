// Tasks from files: one JSON object a line,
//
//   {"clean": "...", "corrupt": "...", "answer": " Mary", "wrong": [" John", " Anne"]}
//
// where answer and wrong are a text or a list of texts. A line may say what stretches of the clean
// prompt are to the task,
//
//   "roles": {"IO": " Mary", "S1": " John", "S2": [" John", 2], "VERB": -2}
//
// each a text (where it first is), a text and which of its places, from 1, or the position of a
// token, from 0 or, below 0, from the end. Token ids stand in the place of texts where clean is a
// list,
//
//   {"clean": [7, 3, 51], "corrupt": [7, 9, 51], "answer": 3, "wrong": [9, 7]}
//   {"clean": [...], "corrupt": [...], "position": [10, 11], "answer": [3, 7], "wrong": [7, [3,
//   9]]}
//
// and a position says where the answer is read, the last one unless given; of several each has an
// entry of answer and wrong, and is a prompt by itself. An answer is a token or, where the model
// has classes, a class. Empty lines are skipped. A line that is not such an
// object is an Error with its number; a pair that does not fit the tokenizer is dropped and
// counted, as in the built-in tasks.
#pragma once

#include <filesystem>
#include <string_view>

#include "filigree/tasks.h"

namespace filigree {

inline constexpr std::size_t kMostTaskBytes = std::size_t{64} << 20;
inline constexpr std::size_t kMostTaskLineBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMostTaskLines = 100000;
inline constexpr std::size_t kMostAnswers = 1000;  // of each kind, in one line
inline constexpr std::size_t kMostRoles = 100;     // likewise
inline constexpr std::size_t kLongestRole = 16;    // bytes of its name

// `most` prompts at most, the first ones that fit. `source` names the text in messages.
TaskPrompts parse_task(std::string_view text, const std::string& source, const Tokenizer& tokenizer,
                       const FitOptions& options, std::size_t most);
TaskPrompts read_task(const std::filesystem::path& file, const Tokenizer& tokenizer,
                      const FitOptions& options, std::size_t most);

}  // namespace filigree
