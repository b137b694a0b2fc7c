// What a reader calls the positions of a task's prompts: by their tokens in one prompt, by what
// they are to the task where several prompts are spoken of together.
#pragma once

#include <cstdint>
#include <string>

#include "filigree/tasks.h"

namespace filigree {

// "' John'"; a token that the prompt has several times carries its position: "' the' 6". The bare
// position where the prompt's tokens are not named.
std::string token_place(const TaskPrompt& prompt, std::int64_t position);

// The role, "IO"; without one the token, "' the'", whichever position it has.
std::string role_place(const TaskPrompt& prompt, std::int64_t position);

}  // namespace filigree
