// docs/commands.md: every command with its arguments, options and settings, made from what the
// program itself declares.
#pragma once

#include <string>

#include "apps/cli/program/program.h"

namespace filigree::cli {

std::string reference_page(const Program& program);

}  // namespace filigree::cli
