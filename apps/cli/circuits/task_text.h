// Tasks and what models make of them, as text for the terminal.
#pragma once

#include <string>

#include "filigree/tasks.h"

namespace filigree::cli {

// "64 of 301 prompts fit; dropped: ...", a line each.
std::string dropped_text(const TaskPrompts& prompts);

// "better than chance: ..." or plainly that it is not.
std::string verdict_text(const TaskCheck& check, const TaskPrompts& prompts);

// "1.234 +- 0.056".
std::string estimate_text(const Estimate& value);

}  // namespace filigree::cli
